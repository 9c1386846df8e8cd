"""The part of Protocol Buffers that HFiles need: numbers and byte strings, by field number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_VARINT_BYTES_MAX: Final = 10
_FIELDS_MAX: Final = 1_000
_NUMBER: Final = 0
_BYTES: Final = 2


def varint(number: int) -> bytes:
    """Return a number from 0 to 2**64 - 1 in as few bytes as it takes."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, value: int | bytes) -> bytes:
    """Return a field with its number."""
    if isinstance(value, int):
        return varint(number << 3 | _NUMBER) + varint(value)
    return varint(number << 3 | _BYTES) + delimited(value)


def delimited(message: bytes) -> bytes:
    """Return bytes behind their length."""
    return varint(len(message)) + message


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield fields with their numbers; `ValueError` if the bytes are no message, or a vast one."""
    at = count = 0
    while at < len(message):
        count += 1
        if count > _FIELDS_MAX:
            raise ValueError(f"a message has more than {_FIELDS_MAX} fields")
        tag, at = _read_varint(message, at)
        if tag & 7 == _NUMBER:
            value, at = _read_varint(message, at)
            yield tag >> 3, value
        elif tag & 7 == _BYTES:
            content, at = read_delimited(message, at)
            yield tag >> 3, content
        else:
            raise ValueError(f"field {tag >> 3} has the wire type {tag & 7}")


def read_delimited(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes behind a length at an offset, and the offset after them."""
    size, at = _read_varint(data, at)
    if size > len(data) - at:
        raise ValueError(f"{size} bytes run past the end of {len(data)}")
    return data[at : at + size], at + size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position, byte in enumerate(data[at : at + _VARINT_BYTES_MAX]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            return value, at + position + 1
    raise ValueError("a number does not end")
