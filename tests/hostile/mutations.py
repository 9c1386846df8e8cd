"""Damage, and forgery that keeps to a format's structure. All of it follows from a seed."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from random import Random
from typing import Any

DEEP = "@deep@"
"""Stands in a JSON document for lists within lists."""
DEPTH = 10_000

NUMBERS = (0, 1, -1, 2, 127, 128, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63), 2**64, 10**400)
TEXTS = (
    *("", " ", "x", "null", "0", "-1", "NaN", "1e999", "²", "١٢٣", "true", "\0", "a\nb", "é", "😀"),
    *("../../etc/passwd", "/etc/passwd", "..", ".hoodie", ".hoodie/hoodie.properties", "%2e%2e"),
    *("C:\\x", "s3://key:secret@bucket/x", "99999999999999999", "x" * 100_000, "[" * 1000, "{}"),
    *("20260101000000000", "a_0-0-0_1.parquet", "\ud800", DEEP),
)
_VALUES: tuple[Any, ...] = (None, True, float("inf"), float("nan"), 0.5, [], {}, [None], {"": {}})
_BLOWN_UP = (b"\xff" * 9 + b"\x01", b"\xfe" + b"\xff" * 8 + b"\x01", b"\x80" * 12, b"\xff" * 16)


def damaged(rng: Random, data: bytes, others: Sequence[bytes] = (), tail: int = 0) -> bytes:
    """Change bytes here and there; only among the last `tail` bytes, if it is not 0."""
    kept, data = (data[:-tail], data[-tail:]) if tail else (b"", data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = _damage(rng, data, others)
    return kept + data


def _damage(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    size = rng.choice((1, 1, 2, 4, 8, 16, rng.randrange(1, 200)))
    piece = data[at : at + size]
    match rng.randrange(12):
        case 0 | 1:
            new = bytes([data[at] ^ 1 << rng.randrange(8)]) if at < len(data) else b"\0"
            return data[:at] + new + data[at + 1 :]
        case 2:
            return data[:at]
        case 3:
            return data + rng.randbytes(size)
        case 4:
            return data[:at] + data[at + size :]
        case 5:
            return data[:at] + piece * rng.choice((2, 3, 100)) + data[at + size :]
        case 6:
            return data[:at] + bytes([rng.choice((0, 0xFF))]) * size + data[at + size :]
        case 7 | 8:
            number = number_bytes(rng, len(data))
            return data[:at] + number + data[at + len(number) :]
        case 9:
            return data[:at] + rng.choice(_BLOWN_UP) + data[at + rng.choice((0, 1, 8)) :]
        case 10 if others:
            other = rng.choice(others)
            return data[:at] + other[rng.randrange(len(other) + 1) :]
    return data[:at] + rng.randbytes(size) + data[at + size :]


def number_bytes(rng: Random, length: int) -> bytes:
    """A length field that lies."""
    number = rng.choice((*NUMBERS, length, length + 1, length - 1, 2 * length))
    kind = rng.choice((">i", "<i", ">q", "<q"))
    bits = struct.calcsize(kind) * 8
    number = (number + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    return struct.pack(kind, number)


def forged_json(rng: Random, text: bytes) -> bytes:
    """Change a few values or keys of a JSON document, or how it is written."""
    body = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        body = _forge(rng, body)
    out = json.dumps(body, indent=rng.choice((None, 2)))
    out = out.replace(f'"{DEEP}"', "[" * DEPTH + "]" * DEPTH)
    match rng.randrange(12):
        case 0:
            out = out.replace(":", ": 1e999, " + json.dumps(rng.choice(TEXTS)) + ":", 1)
        case 1:
            out = "[" * DEPTH + out
        case 2:
            out = out.replace("0", "9" * 5000, 1)
        case 3:
            return out.encode("utf-16")
    return out.encode("utf-8", "surrogatepass")


def _forge(rng: Random, value: Any) -> Any:
    """Replace one value somewhere below."""
    below: list[Any] = []
    if isinstance(value, dict):
        below = list(value)
    elif isinstance(value, list):
        below = list(range(len(value)))
    if not below or rng.random() < 0.15:
        return _hostile(rng)
    key = rng.choice(below)
    chance = rng.random()
    if isinstance(value, dict) and chance < 0.1:
        return {k: v for k, v in value.items() if k != key}
    if isinstance(value, dict) and chance < 0.2:
        return {**value, str(rng.choice(TEXTS)): value[key]}
    if isinstance(value, list) and chance < 0.2:
        return value * rng.choice((0, 2, 50))
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _forge(rng, value[key])
    return copy


def _hostile(rng: Random) -> Any:
    return rng.choice((rng.choice(NUMBERS), rng.choice(TEXTS), rng.choice(_VALUES)))


def forged_lines(rng: Random, text: bytes) -> bytes:
    """Change a few lines of a properties text."""
    lines = text.decode("latin-1").split("\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(lines))
        key, _, value = lines[at].partition("=")
        hostile = str(rng.choice((*TEXTS, *NUMBERS))).replace("\n", "\\n")
        match rng.randrange(8):
            case 0:
                lines[at] = f"{hostile}={value}"
            case 1:
                del lines[at]
                lines = lines or [""]
            case 2:
                lines.insert(at, lines[rng.randrange(len(lines))])
            case 3:
                lines[at] = "".join(rng.sample(lines[at], len(lines[at])))
            case 4:
                lines[at] = f"{key}={value}\\"
            case 5:
                lines[at] = "a\\\n" * rng.choice((1, 30_000)) + f"{key}=\\u{rng.choice(TEXTS)[:4]}"
            case _:
                lines[at] = f"{key}={hostile}"
    return "\n".join(lines).encode("latin-1", "replace")


def varint(number: int) -> bytes:
    """An Avro long."""
    rest = (number << 1 ^ number >> 63) & (1 << 64) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])
