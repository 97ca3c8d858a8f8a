"""A WebSocket with binary messages, and single HTTP calls, over TCP, TLS or a Unix socket: the client's side of RFC 6455."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import ssl
import struct
from typing import Dict, Optional, Tuple
from urllib.parse import SplitResult

MAX_MESSAGE = 512 << 20
"""The largest message or response of a node, in bytes."""

_MAX_HEAD = 64 << 10  # bytes of an HTTP response's head
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10

Streams = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NotUpgraded(Exception):
    """There is something at the address, and it opens no WebSocket."""


class Ended(Exception):
    """The WebSocket was closed, or is lost."""


async def dial(parts: SplitResult, tls: Optional[ssl.SSLContext]) -> Streams:
    """Opens a connection to a node."""
    if parts.scheme == "unix":
        return await asyncio.open_unix_connection(parts.path, limit=_MAX_HEAD)
    port, secure = parts.port, parts.scheme == "https"
    context = tls or ssl.create_default_context() if secure else None
    return await asyncio.open_connection(parts.hostname, port or (443 if secure else 80), ssl=context, limit=_MAX_HEAD)


def _host(parts: SplitResult) -> str:
    return "parley" if parts.scheme == "unix" else parts.netloc.rpartition("@")[2]


def _path(parts: SplitResult, rest: str) -> str:
    return rest if parts.scheme == "unix" else parts.path.rstrip("/") + rest


def _head(first: str, parts: SplitResult, token: Optional[str], more: Dict[str, str]) -> bytes:
    lines = {"Host": _host(parts), **more, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    text = "\r\n".join([first, *(f"{name}: {value}" for name, value in lines.items())])
    if text.count("\r\n") != len(lines):
        raise ValueError("a token has no line breaks")
    return (text + "\r\n\r\n").encode("latin-1")


async def _read_head(reader: asyncio.StreamReader) -> Tuple[int, Dict[str, str]]:
    """Reads the head of a response. It raises OSError for what is none."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as cause:
        raise ConnectionError("the answer is no HTTP") from cause
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    return status, headers


async def post(streams: Streams, parts: SplitResult, token: Optional[str], operation: str, body: bytes) -> Tuple[int, bytes]:
    """Makes a call by HTTP on a connection of its own. HTTP/1.0 has no chunks."""
    reader, writer = streams
    more = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
    writer.write(_head(f"POST {_path(parts, '/rpc/' + operation)} HTTP/1.0", parts, token, more) + body)
    status, headers = await _read_head(reader)
    size = headers.get("content-length", "")
    text = bytearray()
    while True:
        part = await reader.read(1 << 16)
        text += part  # to the end of the connection
        if len(text) > MAX_MESSAGE:
            raise ConnectionError("the answer is too long")
        if not part:
            break
    if size.isdigit() and int(size) != len(text):
        raise ConnectionError("the answer ends early")
    return status, bytes(text)


class WebSocket:
    """One open WebSocket. One task at a time may receive; any may send."""

    def __init__(self, streams: Streams) -> None:
        self._reader, self._writer = streams

    @staticmethod
    async def open(streams: Streams, parts: SplitResult, token: Optional[str], protocol: str) -> WebSocket:
        """Makes a connection a WebSocket. It raises NotUpgraded if the other side has none of the protocol."""
        reader, writer = streams
        key = base64.b64encode(os.urandom(16)).decode()
        more = {
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Protocol": protocol,
        }
        writer.write(_head(f"GET {_path(parts, '/ws')} HTTP/1.1", parts, token, more))
        status, headers = await _read_head(reader)
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        if status != 101 or headers.get("sec-websocket-accept") != accept or headers.get("sec-websocket-protocol") != protocol:
            raise NotUpgraded(f"it answers with HTTP status {status}")
        return WebSocket(streams)

    def send(self, message: bytes) -> None:
        """Sends a binary message."""
        self._write(_BINARY, message)

    def ping(self) -> None:
        """Asks the other side for a sign."""
        self._write(_PING, b"")

    def close(self) -> None:
        """Closes the WebSocket, without waiting for the other side."""
        self._write(_CLOSE, b"\x03\xe8")
        self._writer.close()

    async def receive(self) -> Optional[bytes]:
        """Waits for a message; None is a pong. It raises Ended when there will be no more."""
        message = bytearray()
        started = False
        while True:
            is_final, code, data = await self._frame(MAX_MESSAGE - len(message))
            if code == _PING:
                self._write(_PONG, data)
            elif code == _PONG:
                return None if not started else await self._rest(message)
            elif code == _CLOSE:
                raise Ended(_reason(data))
            elif (code == _BINARY) == started or code not in (_BINARY, _CONTINUATION):
                raise Ended("the node sends what is no binary message")
            else:
                started = True
                message += data
                if is_final:
                    return bytes(message)

    async def _rest(self, message: bytearray) -> bytes:
        while True:
            is_final, code, data = await self._frame(MAX_MESSAGE - len(message))
            if code == _PING:
                self._write(_PONG, data)
            elif code == _CONTINUATION:
                message += data
                if is_final:
                    return bytes(message)
            elif code != _PONG:
                raise Ended("a message was not ended")

    async def _frame(self, at_most: int) -> Tuple[bool, int, bytes]:
        try:
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack(">H", await self._reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack(">Q", await self._reader.readexactly(8))
            if first & 0x70 or second & 0x80 or size > at_most or (first & 0x08 and size > 125):
                raise Ended("the node sends what is no frame")
            return bool(first & 0x80), first & 0x0F, await self._reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError) as cause:
            raise Ended("the connection was lost") from cause

    def _write(self, code: int, data: bytes) -> None:
        size, head = len(data), bytes([0x80 | code])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 1 << 16:
            head += struct.pack(">BH", 0x80 | 126, size)
        else:
            head += struct.pack(">BQ", 0x80 | 127, size)
        mask = secrets.token_bytes(4)
        pad = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        masked = (int.from_bytes(data, "big") ^ pad).to_bytes(size, "big")
        if not self._writer.is_closing():
            self._writer.write(head + mask + masked)


def _reason(data: bytes) -> str:
    code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
    return f"the node closed the connection ({code}) {data[2:].decode(errors='replace')}".rstrip()
