"""The protobuf wire format: varints, keys, length-delimited fields. Source: protobuf.dev, "Encoding"."""

from __future__ import annotations

VARINT, FIXED64, BYTES, START_GROUP, END_GROUP, FIXED32 = range(6)

_LONGEST_VARINT = 10
_MASK = (1 << 64) - 1
_SMALL = tuple(bytes((value,)) for value in range(128))


class WireError(ValueError):
    """Bytes that are no protobuf message. The texts are gogo-proto's."""


def varint(value: int) -> bytes:
    """A number as a varint; negative ones in ten bytes, as two's complement of 64 bits."""
    if 0 <= value < 128:
        return _SMALL[value]
    value &= _MASK
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def key(number: int, wire_type: int) -> bytes:
    """The key before a field: its number and wire type."""
    return varint(number << 3 | wire_type)


def delimited(payload: bytes) -> bytes:
    """A payload after its length."""
    return varint(len(payload)) + payload


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The unsigned number at `at` and the place after it."""
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = data[place]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _MASK, place + 1
        shift += 7
    raise WireError("proto: integer overflow" if end - at >= _LONGEST_VARINT else "unexpected EOF")


def read_length(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The start and end of the payload of the length-delimited field at `at`."""
    length, start = read_varint(data, at, end)
    if length >= 1 << 63:
        raise WireError("proto: negative length found during unmarshaling")
    if start + length > end:
        raise WireError("unexpected EOF")
    return start, start + length


def skip(data: bytes, at: int, end: int, wire_type: int) -> int:
    """The place after an unknown field's value. Groups, long deprecated, are refused."""
    if wire_type == VARINT:
        return read_varint(data, at, end)[1]
    if wire_type == BYTES:
        return read_length(data, at, end)[1]
    if wire_type not in (FIXED64, FIXED32):
        raise WireError(f"proto: illegal wireType {wire_type}")
    at += 8 if wire_type == FIXED64 else 4
    if at > end:
        raise WireError("unexpected EOF")
    return at


def signed(value: int, bits: int) -> int:
    """A varint as Go's int32 or int64: the low bits, with their sign."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
