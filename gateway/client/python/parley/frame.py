"""Frames: msgpack arrays, several to a message. A body is JSON as text, and the node answers with the same."""

from __future__ import annotations

import json
import struct
from typing import Any, Iterator, List, Tuple

PROTOCOL = "parley.mux"
"""The WebSocket subprotocol of connections whose messages hold frames: docs/http-and-websocket.md describes them."""

CALL, CANCEL, SIGN_IN, SIGN_OUT, ASK, FOLLOW, CREDIT, FOLLOW_AGENTS, ASK_BY = range(9)
"""The kinds of frames that a client sends."""

RESULT, REFUSAL, ASKED, ITEM, GOING = range(5)
"""The kinds of frames that a node sends."""

_MAX_DEPTH = 64  # of values within values


class Malformed(Exception):
    """What the node has sent is no frame."""


def write(out: bytearray, *parts: Any) -> None:
    """Appends a frame: numbers, texts, and bodies as bytes of JSON."""
    out.append(0x90 | len(parts))
    for part in parts:
        if isinstance(part, int):
            _write_uint(out, part)
        elif isinstance(part, str):
            text = part.encode()
            out += struct.pack(">BB", 0xD9, len(text)) + text  # an operation's name
        else:
            out += struct.pack(">BIB", 0xC9, len(part), 1) + part


def _write_uint(out: bytearray, n: int) -> None:
    if n < 0x80:
        out.append(n)
    elif n < 1 << 32:
        out += struct.pack(">BI", 0xCE, n)
    else:
        out += struct.pack(">BQ", 0xCF, n)


def read(message: bytes) -> Iterator[Tuple[int, int, Any]]:
    """Yields the kind, ID and body of each frame of a message."""
    reader = _Reader(message)
    while reader.at < len(message):
        frame = reader.value(0)
        if not isinstance(frame, list) or len(frame) != 3:
            raise Malformed("it is no array of three")
        kind, id, body = frame  # noqa: A001: as the protocol calls it
        if type(kind) is not int or type(id) is not int or not RESULT <= kind <= GOING:
            raise Malformed("it is of no known kind")
        yield kind, id, body


class _Reader:
    """Reads values of msgpack one after the other."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self.at = 0

    def value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise Malformed("it is too deep")
        head = self._take(1)[0]
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head < 0x90:
            return self._map(head & 0x0F, depth)
        if head < 0xA0:
            return self._list(head & 0x0F, depth)
        if head < 0xC0:
            return self._text(head & 0x1F)
        return self._long(head, depth)

    def _long(self, head: int, depth: int) -> Any:
        if head in _CONSTANTS:
            return _CONSTANTS[head]
        if head in _NUMBERS:
            return self._number(_NUMBERS[head])
        if head in _FIXED:
            return self._extension(_FIXED[head])
        if head not in _SIZES:
            raise Malformed("it has an unknown head")
        what, form = _SIZES[head]
        size = self._number(form)
        if what == "text":
            return self._text(size)
        if what == "bytes":
            return self._take(size)
        if what == "list":
            return self._list(size, depth)
        return self._map(size, depth) if what == "map" else self._extension(size)

    def _take(self, size: int) -> bytes:
        taken = self._message[self.at : self.at + size]
        if len(taken) < size:
            raise Malformed("it ends early")
        self.at += size
        return taken

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, size: int) -> str:
        try:
            return self._take(size).decode()
        except ValueError as cause:
            raise Malformed("its text is not UTF-8") from cause

    def _list(self, size: int, depth: int) -> List[Any]:
        return [self.value(depth + 1) for _ in range(size)]  # each takes a byte at least: the message bounds it

    def _map(self, size: int, depth: int) -> Any:
        read = {}
        for _ in range(size):
            name = self.value(depth + 1)
            if not isinstance(name, str):
                raise Malformed("a member's name is no text")
            read[name] = self.value(depth + 1)
        return read

    def _extension(self, size: int) -> Any:
        kind = self._take(1)[0]
        data = self._take(size)
        if kind != 1:
            raise Malformed("it has an unknown extension")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as cause:
            raise Malformed("its JSON cannot be read") from cause


_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_FIXED = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_SIZES = {
    0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"),
    0xC7: ("extension", ">B"), 0xC8: ("extension", ">H"), 0xC9: ("extension", ">I"),
    0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip
