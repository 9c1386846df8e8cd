from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeAlias
from unittest.mock import patch

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie_ds.errors import CorruptFileError, HoodieError, UnsupportedTableError
from hoodie_ds.formats.hfile import container, reader, writer
from hoodie_ds.formats.hfile.container import Block, Codec
from hoodie_ds.formats.hfile.protobuf import delimited, field
from hoodie_ds.formats.hfile.reader import HFile
from hoodie_ds.formats.hfile.writer import encode_block
from tests.hfiles import (
    GOLDEN,
    TABLES,
    Entries,
    golden_hfiles,
    hfile,
    leaf_index,
    leveled_hfile,
    root_index,
    trailer,
    with_other_contents,
)
from tests.hostile.format import must_name
from tests.hostile.limits import within_limits

ENTRIES = [(b"k%04d" % i, b"v%d" % i * (i % 5)) for i in range(200)]
LAYOUTS: dict[str, Callable[[Entries, Codec], bytes]] = {
    "one block": hfile,
    "blocks": lambda entries, codec: hfile(entries, codec, 100),
    "two levels": lambda entries, codec: leveled_hfile(entries, 20, codec),
    "five levels": lambda entries, codec: leveled_hfile(entries, 3, codec),
}


def opened(data: bytes) -> HFile:
    return HFile(io.BytesIO(data), "f")


Fields: TypeAlias = dict[int, int | bytes]


FEW = (0, 1 << 20)
"""Bytes below which entries are followed one by one: never, and always."""


class Counted(io.BytesIO):
    """A file that counts what is read of it."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


@pytest.mark.parametrize("table", GOLDEN)
def test_every_file_of_a_golden_table(table: str) -> None:
    partitions: dict[str, set[bytes]] = {}
    for name, data in golden_hfiles(table):
        file = opened(data)
        schema = fastavro.parse_schema(json.loads(file.info["schema"]))
        entries = list(file.scan())
        keys = [key for key, _ in entries]
        assert keys == sorted(set(keys))
        assert file.info["hfile.LASTKEY"][2:] == keys[-1]
        for _, value in entries:
            body = io.BytesIO(value)
            assert fastavro.schemaless_reader(body, schema)["key"] == ""
            assert not body.read()
        assert list(file.get_many(keys)) == entries
        is_base = name.endswith(".hfile")
        assert (file.meta_block("bloomFilter") is not None) == is_base
        assert file.meta_block("none") is None
        partitions.setdefault(name.split("/")[2], set()).update(keys)
    assert partitions["files"] == {b"__all_partitions__", b"city=ams", b"city=nyc"}
    if "record_index" in partitions:
        assert partitions["record_index"] == {b"k00", b"k01", b"k02", b"k03", b"k05"}


@pytest.mark.parametrize("name", ["hbase_gz", "hbase_none"])
def test_a_file_of_hbase(name: str) -> None:
    file = opened((TABLES.parent / f"hfiles/{name}.hfile").read_bytes())
    entries = [(b"k%05d" % i, b"v%d" % i * (i % 4)) for i in range(60)]
    assert list(file.scan()) == entries
    for key, value in entries:
        assert list(file.get_many([key, key + b"0"])) == [(key, value)]
        assert list(file.scan_prefixes([key[:5]])) == entries[int(key[1:5]) * 10 :][:10]
    assert file.meta_block("bloomFilter") == b"AAAA"
    assert file.info["schema"] == b'"bytes"'


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("layout", LAYOUTS)
@given(data=st.data())
def test_what_is_looked_up_is_found(layout: str, codec: Codec, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([b"", b"as others: "]))
    texts = (st.binary(max_size=3) | st.text("ab", max_size=4).map(str.encode)).map(start.__add__)
    values = st.binary(max_size=40) | st.just(ONE) | st.just(b"v" + ONE[:20])
    there = data.draw(st.dictionaries(texts, values, min_size=1, max_size=60))
    entries = sorted(there.items())
    file = opened(LAYOUTS[layout](entries, codec))
    assert file.num_entries == len(entries)
    assert list(file.scan()) == entries
    wanted = data.draw(st.lists(texts | st.sampled_from(sorted(there)), max_size=20))
    # Each key is searched in entries that are read at once, or all keys of a block are compared.
    for cost, few in zip((0, 1 << 20), FEW, strict=True):
        with patch.multiple(container, _SEARCH_COST=cost, _FEW_BYTES=few):
            assert list(file.get_many(wanted)) == [e for e in entries if e[0] in wanted]
            keys = sorted({*wanted})
            parts = (
                zip(*columns, strict=True) for columns in file.find(pa.array(keys, pa.binary()))
            )
            found = {keys[at]: value.as_py() for at, value in chain.from_iterable(parts)}
            assert found == {key: value for key, value in entries if key in wanted}
    begun = [entry for entry in entries if entry[0].startswith(tuple(wanted))]
    assert list(file.scan_prefixes(wanted)) == begun


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_without_entries(layout: str, codec: Codec) -> None:
    if "levels" in layout:
        return
    file = opened(LAYOUTS[layout]([], codec))
    assert list(file.scan()) == list(file.get_many([b"k"])) == []
    assert list(file.scan_prefixes([b""])) == []


def test_only_needed_blocks_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_TAIL_BYTES", container.TRAILER_BYTES)
    entries = [(b"k%06d" % i, b"v" * 50) for i in range(9_000)]
    source = Counted(leveled_hfile(entries, 30, Codec.NONE))
    file = HFile(source, "f")
    reads = source.reads

    def read_by(found: Iterator[tuple[bytes, bytes]], keys: list[bytes]) -> int:
        nonlocal reads
        before = reads
        assert [key for key, _ in found] == keys
        reads = source.reads
        return reads - before

    near, far = b"k000007", b"k000907"
    assert read_by(file.get_many([near]), [near]) == 2  # a block of the index and one of data
    assert read_by(file.get_many([near, b"k000008"]), [near, b"k000008"]) == 2
    assert read_by(file.get_many([far, near]), [near, far]) == 4
    assert read_by(file.get_many([b"a", b"k0000075"]), []) == 2
    assert read_by(file.get_many([b"a"]), []) == 0
    twenty = [key for key, _ in entries[:20]]
    assert read_by(file.scan_prefixes([b"k00000", b"k00001"]), twenty) == 2
    hundred = [key for key, _ in entries[880:900]] + [key for key, _ in entries[900:1_000]]
    assert read_by(file.scan_prefixes([b"k00088", b"k00089", b"k0009"]), hundred) == 7


def test_a_large_section_is_read_when_the_file_is_opened() -> None:
    entries = [(b"%030d" % i, b"") for i in range(2_000)]
    source = Counted(hfile(entries, Codec.NONE, 50))
    file = HFile(source, "f")
    assert source.reads == 2
    assert list(file.get_many([b"%030d" % 1_999])) == [entries[-1]]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_flipped_or_missing_byte_is_seen_or_without_effect(layout: str, codec: Codec) -> None:
    data = LAYOUTS[layout](ENTRIES[:40], codec)
    refused = 0
    places = [at for at in range(len(data)) if at < len(data) - 3_900 or at > len(data) - 8]
    for at in places:
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]):
            try:
                file = opened(damaged)
                found = list(file.scan())
                list(file.get_many([key for key, _ in ENTRIES]))
                file.meta_block("bloomFilter")
            except HoodieError as error:
                refused += 1
                must_name(error, "f: ")
            else:
                assert codec is Codec.NONE or found == ENTRIES[:40], at
    assert refused > len(places)


def forged(
    root: list[Block] | bytes = b"",
    content: bytes = b"",
    info: bytes = b"PBUF\0",
    *,
    kind: bytes = container.DATA,
    fields: Fields | None = None,
) -> bytes:
    """A file of one block, with an index and a trailer that may lie."""
    block = encode_block(kind, content, Codec.GZIP)
    index = root if isinstance(root, bytes) else root_index(root)
    sections = [(container.ROOT_INDEX, index), (container.ROOT_INDEX, b"")]
    rest = [
        encode_block(*section, Codec.GZIP) for section in [*sections, (container.FILE_INFO, info)]
    ]
    numbers: Fields = {2: len(block), 5: 1, 6: 0, 7: 1, 8: 1, 12: 1, **(fields or {})}
    return block + b"".join(rest) + trailer(numbers)


SIZE = len(encode_block(container.DATA, b"", Codec.GZIP))
ONE = struct.pack(">iiH", 13, 0, 1) + b"k" + container.KEY_TAIL + b"\0"


def whole(fields: Fields | None = None, info: bytes = b"PBUF\0") -> bytes:
    size = len(encode_block(container.DATA, ONE, Codec.GZIP))
    return forged([Block(0, size, b"k")], ONE, info, fields=fields)


def test_what_is_forged_can_be_whole() -> None:
    assert list(opened(whole()).scan()) == [(b"k", b"")]


HUGE = (1 << 64) - 1
FORGED = {
    "no bytes": b"",
    "no magic": bytes(5_000),
    "another version": whole()[:-1] + b"\2",
    "an index of no level": whole({8: 0}),
    "an index of many levels": whole({8: 1 << 40}),
    "an index of a level that is not there": whole({8: 2}),
    "a section outside of the file": whole({2: 1 << 40}),
    "a section before the file": whole({2: HUGE}),
    "more entries in the index than it has bytes": whole({5: 1 << 62}),
    "more meta blocks than there are": whole({6: 1 << 62}),
    "more entries than there are": whole({7: 2}),
    "bytes for a number": whole({5: b"1"}),
    "a block of the index outside": forged([Block(1 << 40, SIZE, b"k")]),
    "a block of the index in the section": forged([Block(SIZE, SIZE, b"k")]),
    "a block of the index of no bytes": forged([Block(0, 0, b"k")]),
    "a block of the index of fewer than none": forged([Block(0, -1, b"k")]),
    "a block of another size": forged([Block(0, SIZE - 1, b"k")]),
    "a block twice": forged([Block(0, SIZE, b"k"), Block(0, SIZE, b"l")], fields={5: 2}),
    "a key of the index that is too long": forged(struct.pack(">qi", 0, SIZE) + b"\x7f\0\1k"),
    "a key of the index of fewer bytes than none": forged(
        struct.pack(">qi", 0, SIZE) + b"\xff\0\1k"
    ),
    "a row of the index that is too long": forged(struct.pack(">qi", 0, SIZE) + b"\3\1\1k"),
    "a meta block for a data block": forged([Block(0, SIZE, b"k")], kind=container.META),
    "no magic in the file info": whole(info=b"ABCD\0"),
    "file info without an end": whole(info=b"PBUF\x7f"),
    "file info of a number": whole(info=b"PBUF\2\x08\1"),
    "file info without a value": whole(info=b"PBUF\4\x0a\2\x0a\0"),
    "file info that is no string": whole(info=b"PBUF\x09\x0a\7\x0a\1\xff\x12\2ab"),
    "file info of another type": whole(info=b"PBUF\1\x09"),
    "versions": whole(info=b"PBUF\x1a\x0a\x18\x0a\x13MAX_MEMSTORE_TS_KEY\x12\1\1"),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_lies_is_refused(what: str) -> None:
    with within_limits(), pytest.raises(CorruptFileError, match=r"^f: is not a whole HFile"):
        list(opened(FORGED[what]).scan())


JAVAS = ["a", "b", "n\U0001f600", "n\uff21", "z", "\ud7ff", "\U0001f600", "\uff21", "\uff21b"]


@pytest.mark.parametrize("order", ["utf-8", "utf-16-be"])
@pytest.mark.parametrize("block_bytes", [1, 60, 1_000])
def test_keys_as_java_sorts_them(
    monkeypatch: pytest.MonkeyPatch, block_bytes: int, order: str
) -> None:
    """Hudi sorts keys by UTF-16, which has emoji before some other characters."""
    monkeypatch.setattr(writer._Writer, "_check", lambda *_: None)
    keys = [key.encode() for key in sorted(JAVAS, key=lambda key: key.encode(order))]
    file = opened(hfile([(key, b"") for key in keys], block_bytes=block_bytes))
    for few in FEW:
        with patch.object(container, "_FEW_BYTES", few):
            assert [key for key, _ in file.get_many(keys)] == keys
    assert [key for key, _ in file.scan()] == keys
    assert [key for key, _ in file.get_many(keys)] == keys
    for key in keys:
        assert [found for found, _ in file.get_many([key, b"none"])] == [key]
        begun = [found for found in keys if found.startswith(key)]
        assert [found for found, _ in file.scan_prefixes([key])] == begun
    begun = [found for found in keys if found.startswith(b"n")]
    assert [found for found, _ in file.scan_prefixes([b"n"])] == begun


@pytest.mark.parametrize("start", [b"", b"as others: "])
@pytest.mark.parametrize("block_bytes", [1, 1_000])
def test_keys_in_another_order_are_refused(
    monkeypatch: pytest.MonkeyPatch, block_bytes: int, start: bytes
) -> None:
    monkeypatch.setattr(writer._Writer, "_check", lambda *_: None)
    data = hfile([(start + b"b", b""), (start + b"a", b"")], block_bytes=block_bytes)
    for few in FEW:
        with (
            patch.object(container, "_FEW_BYTES", few),
            pytest.raises(CorruptFileError, match="not in order"),
        ):
            list(opened(data).get_many([start + b"b"]))


def test_file_info_has_few_items() -> None:
    pair = field(1, b"n") + field(2, b"")
    few, many = (b"PBUF" + delimited(field(1, pair) * count) for count in (1_000, 1_001))
    assert opened(whole(info=few)).info == {"n": b""}
    with pytest.raises(CorruptFileError, match="more than 1000 fields"):
        opened(whole(info=many))


def entry(key_size: int, value_size: int, row_size: int, rest: bytes) -> bytes:
    return struct.pack(">iiH", key_size, value_size, row_size) + rest


ENTRIES_THAT_LIE = {
    "a key of another size": entry(14, 0, 1, ONE[10:] + bytes(9)),
    "a value that is too long": entry(13, 1 << 30, 1, ONE[10:]),
    "a value of fewer bytes than none": entry(13, -1, 1, ONE[10:]),
    "a row that is too long": entry(12 + 60_000, 0, 60_000, ONE[10:]),
    "a version": ONE[:-1] + b"\1",
    "half of an entry": ONE[:5],
    "an entry without its last byte": ONE[:-1],
    "a key twice": ONE + ONE,
}


@pytest.mark.parametrize("what", ENTRIES_THAT_LIE)
def test_an_entry_that_lies_is_refused(what: str) -> None:
    content = ENTRIES_THAT_LIE[what]
    size = len(encode_block(container.DATA, content, Codec.GZIP))
    file = opened(forged([Block(0, size, b"k")], content))
    for few in FEW:
        with (
            patch.object(container, "_FEW_BYTES", few),
            pytest.raises(CorruptFileError, match=r"^f: "),
        ):
            list(file.get_many([b"k", b"l"]))


def below_root(content: bytes, kind: bytes = container.LEAF_INDEX, levels: int = 2) -> HFile:
    size = len(encode_block(kind, content, Codec.GZIP))
    return opened(forged([Block(0, size, b"k")], content, kind=kind, fields={8: levels}))


INDEXES_THAT_LIE = {
    "no entry": leaf_index([]),
    "another key": leaf_index([Block(0, SIZE, b"l")]),
    "more entries than bytes": struct.pack(">i", 1 << 30),
    "fewer entries than none": struct.pack(">iiii", -1, 0, 0, 0),
    "an entry that is too short": struct.pack(">iiiqi", 1, 0, 5, 0, SIZE),
    "an entry past the end": struct.pack(">iiiqi", 1, 0, 500, 0, SIZE),
    "an entry before the start": struct.pack(">iiiqi", 1, -12, 12, 0, SIZE),
    "a block outside": leaf_index([Block(1 << 40, SIZE, b"k")]),
    "itself": leaf_index([Block(0, SIZE, b"k")]),
}


@pytest.mark.parametrize("what", INDEXES_THAT_LIE)
def test_an_index_block_that_lies_is_refused(what: str) -> None:
    with pytest.raises(CorruptFileError, match=r"^f: "):
        list(below_root(INDEXES_THAT_LIE[what]).scan())


def test_an_index_that_hides_keys_is_refused() -> None:
    def with_another_root(contents: list[bytes]) -> list[bytes]:
        *others, root, metas, info = contents
        return [*others, root.replace(b"k0000", b"k0001"), metas, info]

    file = opened(with_other_contents(leveled_hfile(ENTRIES, 10), with_another_root))
    with pytest.raises(CorruptFileError, match=r"^f: .*other keys than its place"):
        list(file.get_many([b"k0002"]))


def test_an_index_that_names_itself_ends() -> None:
    content = leaf_index([Block(0, 80, b"k")])
    size = len(encode_block(container.INTERMEDIATE_INDEX, content, Codec.GZIP))
    content = leaf_index([Block(0, size, b"k")])
    assert len(encode_block(container.INTERMEDIATE_INDEX, content, Codec.GZIP)) == size
    with pytest.raises(CorruptFileError, match=r"^f: "):
        list(below_root(content, container.INTERMEDIATE_INDEX, 16).scan())


def test_parts_of_an_index_that_share_blocks_are_refused() -> None:
    """Else an index of a few kilobytes could name one block a thousand times."""
    data = encode_block(container.DATA, ONE, Codec.NONE)
    leaves = [
        encode_block(container.LEAF_INDEX, leaf_index([Block(0, len(data), key)]), Codec.NONE)
        for key in (b"k", b"l")
    ]
    at = len(data)
    root = [Block(at, len(leaves[0]), b"k"), Block(at + len(leaves[0]), len(leaves[1]), b"l")]
    start = data + b"".join(leaves)
    kinds = [container.ROOT_INDEX, container.ROOT_INDEX, container.FILE_INFO]
    rest = [root_index(root), b"", b"PBUF\0"]
    section = b"".join(encode_block(*pair, Codec.NONE) for pair in zip(kinds, rest, strict=True))
    end = trailer({2: len(start), 5: 2, 7: 2, 8: 2, 12: 2})
    with pytest.raises(CorruptFileError, match="overlap"):
        list(opened(start + section + end).scan())


def test_a_bomb_is_refused_before_it_bursts() -> None:
    zeros = zlib.compressobj(wbits=31)
    bomb = b"".join(zeros.compress(bytes(1 << 20)) for _ in range(300)) + zeros.flush()
    for claimed in (10, 64 << 20, (64 << 20) + 1, (1 << 31) - 1):
        head = container.HEADER
        end = head.size + len(bomb)
        block = head.pack(container.DATA, len(bomb), claimed, -1, 0, 16 << 10, end) + bomb
        index = encode_block(container.ROOT_INDEX, root_index([Block(0, end, b"k")]), Codec.GZIP)
        empty = encode_block(container.ROOT_INDEX, b"", Codec.GZIP)
        info = encode_block(container.FILE_INFO, b"PBUF\0", Codec.GZIP)
        numbers: Fields = {2: end, 5: 1, 7: 1, 8: 1, 12: 1}
        file = opened(block + index + empty + info + trailer(numbers))
        with within_limits(), pytest.raises(CorruptFileError, match=r"^f: "):
            list(file.scan())


@pytest.mark.parametrize(("fields", "how"), [({12: 6}, "codec 6"), ({13: b"key"}, "encrypted")])
def test_other_codecs_and_encryption_are_named(fields: Fields, how: str) -> None:
    with pytest.raises(UnsupportedTableError, match=f"^f: .*{how}"):
        opened(whole(fields))
