"""What S3 has more than other file systems of fsspec: deletes, versions and files in parts."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from fsspec.asyn import sync

from hoodie_ds.storage.foreign_errors import RefusedKeyError, is_missing_upload
from hoodie_ds.storage.fsspec_storage import FsspecStorage, modified_ms, refused_conditions
from hoodie_ds.storage.path import check_path
from hoodie_ds.storage.protocol import FileStatus, Upload, Version

_KEYS_A_REQUEST: Final = 1000
"""The most that S3 deletes at once."""


@dataclass(frozen=True, slots=True)
class S3Storage(FsspecStorage):
    """A `Storage` on S3."""

    def begin_upload(self, path: str) -> Upload:
        """Begin a new file in parts."""
        return _Upload(self, path)

    def read(self, path: str) -> bytes:
        """Return a whole file by one request; s3fs asks for its size first."""
        return self.read_version(path)[0]

    def read_version(self, path: str) -> tuple[bytes, Version]:
        """Return a whole file and its version, its ETag."""
        with self._call("read", path) as (system, full):
            return cast(tuple[bytes, Version], sync(system.loop, _get, system, full))

    def replace_version(self, path: str, data: bytes, version: Version) -> Version:
        """Replace a file that has a version, and return its new one."""
        with self._call("replace", path) as (system, full), refused_conditions():
            put = {**_object(system, full), "Body": data, "IfMatch": version}
            return system.call_s3("put_object", **put)["ETag"]

    def list(
        self, path: str, recursive: bool = False, *, folders: bool = False
    ) -> builtins.list[FileStatus]:
        """Return the files in a folder, or its sub-folders, by a request for each thousand."""
        kind = "CommonPrefixes" if folders else "Contents"
        prefix, found = self._found(kind, path, below=recursive and not folders)
        below = f"{path}/" if path else ""
        if folders:
            names = [entry["Prefix"].removeprefix(prefix).rstrip("/") for entry in found]
            return [FileStatus(below + name, 0) for name in sorted(names)]
        statuses = [
            FileStatus(below + entry["Key"].removeprefix(prefix), entry["Size"], modified_ms(entry))
            for entry in found
            if not entry["Key"].endswith("/")  # some tools' way to mark an empty folder
        ]
        return sorted(statuses, key=lambda status: status.path)

    def names(self, path: str, beginning: str = "") -> builtins.list[str]:
        """Return the names of a folder's files that have a beginning, without asking for others."""
        prefix, found = self._found("Contents", path, beginning)
        return [entry["Key"].removeprefix(prefix) for entry in found]

    def delete_many(self, paths: Collection[str]) -> None:
        """Delete files with a request for each thousand."""
        ordered = sorted(set(paths))
        for start in range(0, len(ordered), _KEYS_A_REQUEST):
            self._delete_some(ordered[start : start + _KEYS_A_REQUEST])

    def abort_uploads(self, paths: Collection[str]) -> None:
        """Delete the parts of files that were never completed."""
        with self._call("abort uploads of", min(paths)) as (system, full):
            place = _object(system, full.removesuffix(min(paths)).rstrip("/"))
            folder = f"{place['Key']}/" if place["Key"] else ""
            keys = {folder + path for path in paths}
            asked = {"Bucket": place["Bucket"], "Prefix": folder}
            while True:
                page = system.call_s3("list_multipart_uploads", **asked)
                for upload in page.get("Uploads", ()):
                    if upload["Key"] in keys:
                        what = {name: upload[name] for name in ("Key", "UploadId")}
                        system.call_s3("abort_multipart_upload", Bucket=place["Bucket"], **what)
                if not page["IsTruncated"]:
                    return
                asked["KeyMarker"] = page["NextKeyMarker"]
                asked["UploadIdMarker"] = page["NextUploadIdMarker"]

    def _found(
        self, kind: str, path: str, beginning: str = "", *, below: bool = False
    ) -> tuple[str, builtins.list[dict[str, Any]]]:
        """Return how the keys of a folder begin, and what a listing has of a kind there."""
        with self._call("list", path, root_allowed=True) as (system, full):
            place = _object(system, full)
            prefix = f"{place['Key']}/" if place["Key"] else ""
            asked = {"Bucket": place["Bucket"], "Prefix": prefix + beginning}
            if not below:
                asked["Delimiter"] = "/"
            return prefix, _entries(system, kind, asked)

    def _delete_some(self, paths: Sequence[str]) -> None:
        for path in paths:
            check_path(path)
        with self._call("delete", paths[0]) as (system, full):
            root = full.removesuffix(paths[0])
            bucket, _, folder = root.partition("/")
            keys = [{"Key": folder + path} for path in paths]
            # s3fs' own _bulk_delete does not report which keys the server has refused.
            answer = system.call_s3(
                "delete_objects", Bucket=bucket, Delete={"Objects": keys, "Quiet": True}
            )
        for refused in answer.get("Errors", ()):
            if refused.get("Code") != "NoSuchKey":
                path = str(refused.get("Key", "")).removeprefix(folder)
                with self._connection(f"cannot delete {path!r} below {self.root!r}"):
                    raise RefusedKeyError(refused)


class _Upload:
    """A multipart upload, which is completed on condition."""

    def __init__(self, storage: S3Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._tags: dict[int, str] = {}
        with storage._call("write", path) as (system, full):
            answer = system.call_s3("create_multipart_upload", **_object(system, full))
        self._id = answer["UploadId"]

    def put(self, number: int, part: bytes) -> None:
        """Store a part."""
        self._tags[number] = self._do("upload_part", PartNumber=number, Body=part)["ETag"]

    def complete(self) -> None:
        """Make an object of the parts, unless there is one of its name."""
        parts = [{"PartNumber": n, "ETag": tag} for n, tag in sorted(self._tags.items())]
        self._do("complete_multipart_upload", MultipartUpload={"Parts": parts}, IfNoneMatch="*")

    def abort(self) -> None:
        """Delete the parts."""
        self._do("abort_multipart_upload")

    def _do(self, method: str, **arguments: object) -> dict[str, Any]:
        with (
            self._storage._call("write", self._path) as (system, full),
            refused_conditions(),
            _missing_upload(system, full),
        ):
            what = {**_object(system, full), "UploadId": self._id, **arguments}
            return cast(dict[str, Any], system.call_s3(method, **what))


@contextlib.contextmanager
def _missing_upload(system: Any, full: str) -> Iterator[None]:  # noqa: ANN401
    """Tell an upload that was completed by a try whose answer was lost from an aborted one."""
    try:
        yield
    except OSError as error:
        if not is_missing_upload(error):
            raise
        if system.exists(full):
            raise FileExistsError(full) from None
        raise FileNotFoundError("its upload was aborted by another process") from None


def _entries(system: Any, kind: str, asked: dict[str, str]) -> list[dict[str, Any]]:  # noqa: ANN401
    """Return what all pages of a listing have of a kind; nothing if there is no bucket."""
    found: list[dict[str, Any]] = []
    while True:
        try:
            page = system.call_s3("list_objects_v2", **asked)
        except FileNotFoundError:
            return []
        found += page.get(kind, ())
        if not page["IsTruncated"]:
            return found
        asked = {**asked, "ContinuationToken": page["NextContinuationToken"]}


def _object(system: Any, full: str) -> dict[str, str]:  # noqa: ANN401
    bucket, key, _ = system.split_path(full)
    return {"Bucket": bucket, "Key": key}


async def _get(system: Any, full: str) -> tuple[bytes, object]:  # noqa: ANN401
    """Return an object and its ETag, by one request."""
    answer = await system._call_s3("get_object", **_object(system, full))
    async with answer["Body"] as body:
        return await body.read(), answer["ETag"]
