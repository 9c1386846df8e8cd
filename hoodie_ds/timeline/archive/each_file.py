"""Reading all files of an archive, while archivers merge them into others and delete them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from typing import Final, TypeVar

from hoodie_ds.errors import NotFoundError
from hoodie_ds.storage.protocol import Storage

File = TypeVar("File", bound=Hashable)
Content = TypeVar("Content")
_TRIES: Final = 5


def each_file(
    storage: Storage,
    listed: Callable[[], Iterable[File]],
    read: Callable[[Storage, File], Content],
) -> Iterator[tuple[File, Content]]:
    """Yield the files of an archive that `listed` names, each once, with what `read` makes of it.

    If one is gone they are listed again. So no instant is missed, and one that was merged into
    another file may come twice. Raises `NotFoundError` if files are gone each time.
    """
    done: set[File] = set()
    for _ in range(_TRIES):
        with suppress(NotFoundError):
            for file in listed():
                if file not in done:
                    found = read(storage, file)
                    done.add(file)
                    yield file, found
            return
    raise NotFoundError(f"{storage.root}: the files of the archive come and go; try again")
