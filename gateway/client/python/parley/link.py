"""One WebSocket with the calls, waits and follows of several agents."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any, AsyncIterator, Deque, Dict, List, Optional, Tuple

from . import frame
from .errors import Lost, ParleyError
from .websocket import Ended, WebSocket

BEAT = 20.0
"""Seconds of silence before the node is asked for a sign. After another it is lost."""

_WINDOW = 32  # items of a follow that a node may send before the first is taken
_JOINED = 64 << 10  # bytes of a message of several frames
_MAX_UNCLAIMED = 256  # outcomes on their way that nobody waits for: each takes a place among its agent's waits


class _Task:
    """A call, ask, follow or sign-in under way."""

    def __init__(self, id: int, kind: int) -> None:  # noqa: A002: as the protocol calls it
        loop = asyncio.get_running_loop()
        self.id, self.kind = id, kind
        self.first: asyncio.Future[Any] = loop.create_future()  # the answer, for an ask the acceptance
        self.last: asyncio.Future[Any] = loop.create_future()  # the outcome of an ask
        for future in (self.first, self.last):
            future.add_done_callback(lambda f: f.cancelled() or f.exception())  # nobody has to look
        self.is_asked = self.is_over = False
        self.claims = 0  # callers that wait for the outcome
        self.items: Deque[Any] = deque()
        self.news = asyncio.Event()
        self.credit = _WINDOW

    def accept(self, body: Any) -> None:
        if self.kind not in (frame.ASK, frame.ASK_BY) or self.is_asked:
            raise frame.Malformed("nothing was asked")
        self.is_asked = True
        _settle(self.first, body)

    def add(self, body: Any) -> None:
        if self.kind not in (frame.FOLLOW, frame.FOLLOW_AGENTS) or self.credit == 0 or not isinstance(body, dict):
            raise frame.Malformed("nothing is followed, or nothing more was allowed")
        self.credit -= 1
        self.items.append(body)
        self.news.set()

    def end(self, body: Any, error: Optional[Exception] = None) -> None:
        self.is_over = True
        self.news.set()
        _settle(self.last if self.is_asked else self.first, body, error)


def _settle(future: asyncio.Future[Any], body: Any, error: Optional[Exception] = None) -> None:
    if future.done():
        return  # the caller was cancelled
    if error is None:
        future.set_result(body)
    else:
        future.set_exception(error)


class Coming:
    """The outcome of a form, which arrives on the link that asked it."""

    def __init__(self, link: Link, task: _Task) -> None:
        self._link, self._task = link, task

    async def wait(self) -> Any:
        """Waits for the outcome. It raises Lost if the link ends before."""
        self._link.claim(self._task)
        try:
            return await asyncio.shield(self._task.last)
        finally:
            self._link.release(self._task)


class Link:
    """A WebSocket that is open, and the tasks on it. It ends when it is lost, malformed, silent or closed."""

    def __init__(self, socket: WebSocket, token: Optional[str], beat: float = BEAT) -> None:
        self._socket, self._token, self._beat = socket, token, beat
        self._agents: Dict[Optional[str], asyncio.Task[int]] = {}  # those that are signed in
        self._tasks: Dict[int, _Task] = {}
        self._unclaimed: Dict[int, _Task] = {}  # accepted asks whose outcomes nobody waits for, the oldest first
        self._last_id = 0
        self._out = bytearray()
        self._is_quiet = self._is_going = self._is_ended = False
        self.has_heard = False  # whether the node has sent a frame
        loop = asyncio.get_running_loop()
        self._work = [loop.create_task(self._receive()), loop.create_task(self._watch())]

    @property
    def is_open(self) -> bool:
        """Reports whether calls may begin."""
        return not self._is_going and not self._is_ended

    async def call(self, token: Optional[str], operation: str, body: bytes) -> Any:
        """Calls an operation, once."""
        agent = await self._signed_in(token)
        return (await self._perform(frame.CALL, agent, operation, body)).first.result()

    async def ask(self, token: Optional[str], operation: str, body: bytes) -> Tuple[Any, Optional[Coming]]:
        """Asks by form, request or approve. The outcome of what is open follows."""
        agent = await self._signed_in(token)
        if operation == "form":
            task = await self._perform(frame.ASK, agent, body)
        else:
            task = await self._perform(frame.ASK_BY, agent, operation, body)
        if not task.is_asked:
            return task.first.result(), None
        self.release(task, 0)
        return task.first.result(), Coming(self, task)

    async def follow(self, kind: int, token: Optional[str], body: bytes) -> AsyncIterator[Any]:
        """Yields messages or agents as they change. It raises what the node refuses, and Lost."""
        agent = await self._signed_in(token)
        task = self._begin(kind, agent, body, _WINDOW)
        taken = 0
        try:
            while True:
                while task.items:
                    yield task.items.popleft()
                    taken += 1
                    if taken >= _WINDOW // 2:
                        task.credit += taken
                        self._write(frame.CREDIT, task.id, taken)
                        taken = 0
                if task.is_over:
                    task.first.result()
                    return
                task.news.clear()
                await task.news.wait()
        finally:
            self._forget(task)

    def claim(self, task: _Task) -> None:
        """Marks an outcome as awaited."""
        task.claims += 1
        self._unclaimed.pop(task.id, None)

    def release(self, task: _Task, claims: int = 1) -> None:
        """Marks an outcome as not awaited any more. The oldest of too many is given up."""
        task.claims -= claims
        if task.claims > 0 or task.is_over:
            return
        self._unclaimed[task.id] = task
        if len(self._unclaimed) > _MAX_UNCLAIMED:
            oldest = self._unclaimed.pop(next(iter(self._unclaimed)))
            self._forget(oldest)
            oldest.end(None, Lost(True, Ended("nobody waited for the outcome")))

    async def close(self) -> None:
        """Ends the link, and waits until its connection is given back."""
        self._end(Ended("the client was closed"))
        await asyncio.gather(*self._work, *self._agents.values(), return_exceptions=True)

    def abandon(self) -> None:
        """Ends the link in a forked process. Nothing is sent: the connection stays the parent's."""
        if not self._is_ended:
            self._is_ended = True
            self._lose(Ended("the process was forked"))

    async def _signed_in(self, token: Optional[str]) -> int:
        if token == self._token:
            return 0
        signing = self._agents.get(token)
        if signing is None:
            signing = asyncio.get_running_loop().create_task(self._sign_in(token))
            self._agents[token] = signing
            signing.add_done_callback(lambda t: self._agents.pop(token, None) if t.cancelled() or t.exception() else None)
        return await asyncio.shield(signing)

    async def _sign_in(self, token: Optional[str]) -> int:
        try:
            task = await self._perform(frame.SIGN_IN, json.dumps({"token": token}).encode())
        except ParleyError as error:
            if error.code in ("QUOTA_EXCEEDED", "RATE_LIMITED"):  # the call itself was not sent
                raise Lost(False, error) from error
            raise
        agent = task.first.result().get("agent")
        if type(agent) is not int:
            raise ParleyError("INTERNAL", "the node's answer to a sign-in cannot be read")
        return agent

    async def _perform(self, kind: int, *parts: Any) -> _Task:
        """Begins a task, and returns it at its first answer."""
        task = self._begin(kind, *parts)
        try:
            await task.first
        except BaseException:
            self._forget(task)
            raise
        return task

    def _begin(self, kind: int, *parts: Any) -> _Task:
        if not self.is_open:
            raise Lost(False, Ended("the connection has ended"))
        self._last_id += 1
        task = _Task(self._last_id, kind)
        self._tasks[task.id] = task
        self._write(kind, task.id, *parts)
        return task

    def _forget(self, task: _Task) -> None:
        """Cancels a task that is under way."""
        if self._tasks.pop(task.id, None) is not None:
            self._write(frame.CANCEL, task.id)

    def _write(self, *parts: Any) -> None:
        """Writes a frame. Frames of the same moment share a message."""
        if self._is_ended:
            return
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        elif len(self._out) > _JOINED:
            self._flush()
        frame.write(self._out, *parts)

    def _flush(self) -> None:
        if self._out and not self._is_ended:
            self._socket.send(bytes(self._out))
        self._out = bytearray()

    async def _receive(self) -> None:
        try:
            while True:
                message = await self._socket.receive()
                self._is_quiet = False
                if message is not None:
                    for kind, id, body in frame.read(message):  # noqa: A001: as the protocol calls it
                        self._dispatch(kind, id, body)
        except (Ended, frame.Malformed) as why:
            self._end(why)

    def _dispatch(self, kind: int, id: int, body: Any) -> None:  # noqa: A002: as the protocol calls it
        self.has_heard = True
        if kind == frame.GOING:
            self._is_going = True
            return
        task = self._tasks.get(id)
        if task is None:
            return  # it was cancelled
        if kind == frame.ASKED:
            return task.accept(body)
        if kind == frame.ITEM:
            return task.add(body)
        del self._tasks[id]
        self._unclaimed.pop(id, None)
        if kind == frame.RESULT:
            return task.end(body)
        if not isinstance(body, dict) or not isinstance(body.get("code"), str):
            raise frame.Malformed("it refuses without a code")
        error = ParleyError(body["code"], str(body.get("message", "")), body.get("hint"), body.get("fields"))
        task.end(None, Lost(True, error) if error.code == "NOT_RUNNING" else error)  # the node is about to stop

    async def _watch(self) -> None:
        """Ends the link when the node is silent."""
        while not self._is_ended:
            self._is_quiet = True
            await asyncio.sleep(self._beat)
            if not self._is_quiet or self._is_ended:
                continue
            self._socket.ping()
            await asyncio.sleep(self._beat)
            if self._is_quiet:
                self._end(Ended("the node is silent"))

    def _end(self, why: Exception) -> None:
        """Ends the link. Tasks under way are lost."""
        if self._is_ended:
            return
        self._flush()
        self._is_ended = True
        self._socket.close()
        self._lose(why)
        current = asyncio.current_task()
        for work in self._work:
            if work is not current:
                work.cancel()

    def _lose(self, why: Exception) -> None:
        tasks: List[_Task] = list(self._tasks.values())
        self._tasks.clear()
        self._unclaimed.clear()
        for task in tasks:
            task.end(None, Lost(True, why))
