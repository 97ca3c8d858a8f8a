"""Tests that need no node: frames, what a stranger may send in place of them, and the WebSocket."""

import asyncio
import random
import struct
import unittest
from typing import List, Optional, Tuple
from urllib.parse import urlsplit

from parley import frame, link
from parley.errors import Lost
from parley.websocket import Ended, NotUpgraded, WebSocket, dial


def body(json: bytes) -> bytes:
    return struct.pack(">BBB", 0xC7, len(json), 1) + json


class Frames(unittest.TestCase):
    def test_written_frames_can_be_read(self) -> None:
        out = bytearray()
        frame.write(out, frame.CALL, 300, 0, "locate", b'{"name":"@self"}')
        self.assertEqual(bytes(out[:12]), b"\x95\x00\xce\x00\x00\x01\x2c\x00\xd9\x06lo")
        self.assertTrue(bytes(out).endswith(b"\xc9\x00\x00\x00\x10\x01" + b'{"name":"@self"}'))

    def test_reads_several(self) -> None:
        got = list(frame.read(b"\x93\x00\x01" + body(b'{"a":1}') + b"\x93\x04\x00\x81\xa4code\xa1x"))
        self.assertEqual(got, [(0, 1, {"a": 1}), (4, 0, {"code": "x"})])

    def test_malformed(self) -> None:
        for message in (
            b"\x93", b"\x93\x00\x01", b"\x92\x00\x01", b"\x93\x05\x01\xc0", b"\x93\xc3\x01\xc0", b"\x93\x00\xff\xc0"[:3],
            b"\x93\x00\x01" + body(b"{"), b"\x93\x00\x01\xc7\x01\x02x", b"\x93\x00\x01\xa1\xff", b"\x93\x00\x01\x81\x01\x01",
            b"\xdd\xff\xff\xff\xff", b"\x91" * 100, b"\x93\x00\x01\xc6\xff\xff\xff\xff", b"\xc1",
        ):  # fmt: skip
            with self.assertRaises(frame.Malformed, msg=repr(message)):
                list(frame.read(message))

    def test_any_bytes_are_read_or_malformed(self) -> None:
        chance = random.Random(1)
        for _ in range(20000):
            message = b"\x93" + bytes(chance.choice(b"\x00\x01\x81\x93\xa1\xc7\xd9\xdc\xcb\xff{}") for _ in range(chance.randrange(12)))
            try:
                list(frame.read(message))
            except frame.Malformed:
                pass


async def with_server(answer: bytes, protocol: str = "parley.mux", upgrade: bool = True) -> Tuple[List[bytes], bytes]:
    """Has a WebSocket opened by a server that then sends an answer. It returns what was received, and sent."""
    import base64
    import hashlib

    sent = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        key = head.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]
        accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        status = "101 Switching Protocols" if upgrade else "404 Not Found"
        writer.write(f"HTTP/1.1 {status}\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n".encode())
        writer.write(answer)
        writer.write_eof()
        sent.extend(await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    parts = urlsplit("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1])
    streams = await dial(parts, None)
    received = []
    try:
        socket = await WebSocket.open(streams, parts, "t", "parley.mux")
        socket.send(b"hello")
        try:
            while True:
                received.append(await socket.receive() or b"pong")
        except Ended:
            pass
    finally:
        streams[1].close()
        server.close()
    await asyncio.sleep(0)
    return received, bytes(sent)


class Sockets(unittest.TestCase):
    def test_messages(self) -> None:
        long = b"x" * 70000
        received, _ = asyncio.run(
            with_server(
                b"\x82\x02ab" + b"\x02\x01c" + b"\x89\x01p" + b"\x80\x01d" + b"\x8a\x00"
                + b"\x82\x7e" + struct.pack(">H", 300) + long[:300] + b"\x82\x7f" + struct.pack(">Q", len(long)) + long
                + b"\x88\x02\x03\xe8"
            )
        )  # fmt: skip
        self.assertEqual(received, [b"ab", b"cd", b"pong", long[:300], long])

    def test_what_is_no_binary_message_ends_it(self) -> None:
        for answer in (b"\x81\x01a", b"\x80\x01a", b"\x82\x81abcda", b"\xc2\x01a", b"\x82\x7f" + b"\xff" * 8, b"\x89\x7e\x01\x00", b"\x02\x01a\x82\x01b", b"\x82\x05a"):
            received, _ = asyncio.run(with_server(answer + b"\x82\x01z"))
            self.assertEqual(received, [], msg=repr(answer))

    def test_other_protocols_are_refused(self) -> None:
        with self.assertRaises(NotUpgraded):
            asyncio.run(with_server(b"", protocol="parley"))
        with self.assertRaises(NotUpgraded):
            asyncio.run(with_server(b"", upgrade=False))


class Links(unittest.TestCase):
    """The end of a link to a node that is silent, with a shorter beat."""

    def test_a_silent_node_is_lost(self) -> None:
        self.assertIsInstance(asyncio.run(self.called(answers=False)), Lost)

    def test_a_slow_node_is_not(self) -> None:
        self.assertIsInstance(asyncio.run(self.called(answers=True)), asyncio.TimeoutError)

    async def called(self, answers: bool) -> BaseException:
        """Makes a call that is not answered, on a link whose pings are answered or not."""
        ends: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        class Socket(WebSocket):
            def __init__(self) -> None:
                self.pings = asyncio.Event()

            def send(self, message: bytes) -> None:
                pass

            def ping(self) -> None:
                self.pings.set()

            def close(self) -> None:
                ends.cancel()

            async def receive(self) -> Optional[bytes]:
                await (self.pings.wait() if answers else ends)
                self.pings.clear()
                return None

        open_link = link.Link(Socket(), None, beat=0.01)
        try:
            await asyncio.wait_for(open_link.call(None, "await", b"{}"), 0.3 if answers else 30)
        except (Lost, asyncio.TimeoutError) as error:
            return error
        finally:
            await open_link.close()
        raise AssertionError("it was answered")


if __name__ == "__main__":
    unittest.main()
