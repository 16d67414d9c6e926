"""Base64 and base32 as Go's strict decoders take them."""

from __future__ import annotations

import base64
import re

from hortus.render.gotemplate.values import wire_bytes, wire_text

_BASE_64 = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_LETTERS_32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BREAKS = b"\r\n"
_PAD = 0x3D


class IllegalData(ValueError):
    """A text that is not in the encoding: `illegal base64 data at input byte 4`."""

    def __init__(self, base: int, place: int) -> None:
        super().__init__(f"illegal base{base} data at input byte {place}")


def decoded_64(text: str) -> str:
    """The text that is base64 here, line breaks left aside. Raises IllegalData."""
    data = wire_bytes(text)
    plain = data.translate(None, _BREAKS)
    if not _BASE_64.fullmatch(plain):
        raise IllegalData(64, _illegal_64(data))
    return wire_text(base64.b64decode(plain))


def _illegal_64(data: bytes) -> int:
    """The offset at which Go's decoder stops."""
    place = 0
    for at, byte in enumerate(data):
        if byte in _BREAKS:
            continue
        if byte == _PAD:
            return at if place < 2 else _illegal_padding(data, at + 1, place)
        if not _BASE_64.fullmatch(bytes((byte,)) * 4):
            return at
        place = (place + 1) % 4
    return len(data) - place


def _illegal_padding(data: bytes, at: int, place: int) -> int:
    at = _past_breaks(data, at)
    if place == 2:
        if at == len(data):
            return at
        if data[at] != _PAD:
            return at - 1
        at = _past_breaks(data, at + 1)
    return at


def _past_breaks(data: bytes, at: int) -> int:
    while at < len(data) and data[at] in _BREAKS:
        at += 1
    return at


def decoded_32(text: str) -> str:
    """The text that is base32 here, line breaks left aside. Raises IllegalData."""
    data = wire_bytes(text).translate(None, _BREAKS)
    size = len(data)
    out = bytearray()
    at = 0
    while at < size:
        letters, at, done = _group_32(data, at, size)
        bits = 0
        for letter in letters:
            bits = bits << 5 | letter
        whole = len(letters) * 5 // 8
        out += (bits >> (len(letters) * 5 - whole * 8)).to_bytes(whole, "big")
        if done:
            break
    return wire_text(bytes(out))


def _group_32(data: bytes, at: int, size: int) -> tuple[list[int], int, bool]:
    """Up to eight letters, where they end, and whether padding ended the text."""
    letters: list[int] = []
    while len(letters) < 8:
        count = len(letters)
        if at >= size:
            raise IllegalData(32, size - count)
        left = size - at - 1
        if data[at] == _PAD and count >= 2 and left < 8:
            _check_padding_32(data, at + 1, count, size)
            return letters, size, True
        letter = _LETTERS_32.find(data[at])
        if letter < 0:
            raise IllegalData(32, at)
        letters.append(letter)
        at += 1
    return letters, at, False


def _check_padding_32(data: bytes, at: int, count: int, size: int) -> None:
    left = size - at
    if left + count < 7:
        raise IllegalData(32, size)
    for offset in range(7 - count):
        if left > offset and data[at + offset] != _PAD:
            raise IllegalData(32, at + offset - 1)
    if count in (1, 3, 6):
        raise IllegalData(32, at - 1)
