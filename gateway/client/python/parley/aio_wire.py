"""The way to a node for asyncio: one connection for all calls, or HTTP where no WebSocket gets through."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Mapping, Optional, Tuple

from . import frame, requests
from .errors import Lost, ParleyError, refusal_in
from .link import Coming, Link
from .websocket import NotUpgraded, WebSocket, dial, post
from .wire import FIRST_PAUSE, LAST_PAUSE, Presence, body_of, parts_of

_DIAL = 5.0  # seconds that opening a connection may take
_PLAIN = 60.0  # seconds of calls by HTTP, after no link could be opened
_GRACE = 60.0  # seconds that a response by HTTP may take beyond the wait that the call asks for
_MAX_LOSSES = 2  # links that a call may lose before it goes by HTTP: its answer may be what ends them


class Connection:
    """The transport to a node for several agents: one link, or HTTP where none can be opened."""

    def __init__(self, url: str, token: Optional[str], tls: Optional[ssl.SSLContext], presence: Presence) -> None:
        self.parts, self.tls, self.presence = parts_of(url), tls, presence
        self._token = token
        self._link: Optional[Link] = None
        self._opening: Optional[asyncio.Task[None]] = None
        self._plain_until = 0.0  # calls go by HTTP until then
        self._unheard = 0  # links in a row that ended before the node had sent a frame
        self._is_closed = False

    async def link(self) -> Optional[Link]:
        """Returns the link, or None for a call by HTTP. It raises Lost if no node can be reached."""
        if self._is_closed:
            raise ParleyError("INVALID_ARGUMENT", "the client is closed")
        if self._link is not None and self._link.is_open:
            return self._link
        if time.monotonic() < self._plain_until:
            return None
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(self._opened)
        await asyncio.shield(self._opening)
        return self._link if self._link is not None and self._link.is_open else None

    def _opened(self, opening: asyncio.Task[None]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # those who wait have it

    async def _open(self) -> None:
        if self._link is not None:
            self._unheard = 0 if self._link.has_heard else self._unheard + 1
            self._link = None
            if self._unheard > 1:  # a proxy accepts WebSockets and does not pass them on
                self._leave_to_http()
                return
        reader, writer = await self.dial()
        try:
            opening = WebSocket.open((reader, writer), self.parts, self._token, frame.PROTOCOL)
            self._link = Link(await asyncio.wait_for(opening, _DIAL), self._token)
        except (NotUpgraded, OSError, asyncio.TimeoutError):
            writer.close()
            self._leave_to_http()  # it will tell why
        except BaseException:
            writer.close()
            raise

    def _leave_to_http(self) -> None:
        self._plain_until = time.monotonic() + _PLAIN
        self._unheard = 0

    async def dial(self) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Opens a connection. It raises Lost if there is nobody."""
        try:
            return await asyncio.wait_for(dial(self.parts, self.tls), _DIAL)
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, asyncio.TimeoutError) as cause:
            self._plain_until = 0
            raise Lost(False, cause) from cause

    async def post(self, token: Optional[str], operation: str, body: bytes, wait: float) -> Any:
        """Makes a call by HTTP."""
        streams = await self.dial()
        try:
            call = post(streams, self.parts, token, operation, body)
            status, text = await asyncio.wait_for(call, wait + _GRACE)
        except (OSError, asyncio.TimeoutError) as cause:
            self._plain_until = 0
            raise Lost(True, cause) from cause
        finally:
            streams[1].close()
        if status != 200:
            raise refusal_in(status, text)
        try:
            return json.loads(text)
        except ValueError as cause:
            raise ParleyError("INTERNAL", f"the node's answer to {operation} cannot be read") from cause

    def reopen(self) -> None:
        """Lets calls begin on another event loop, after close or in a forked process."""
        if self._link is not None:
            self._link.abandon()
        self._link = self._opening = None
        self._is_closed = False

    async def close(self) -> None:
        """Closes the connection, for all its agents."""
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._link is not None:
            await self._link.close()


class AsyncWire:
    """The way to a node for one agent."""

    def __init__(self, connection: Connection, token: Optional[str], as_: Optional[str]) -> None:
        self._connection, self._token, self._as = connection, token, as_
        self._presence = connection.presence

    def beside(self, token: Optional[str], as_: Optional[str]) -> AsyncWire:
        """Returns the way for another agent, over the same connection."""
        return AsyncWire(self._connection, self._token if token is None else token, as_)

    async def look(self) -> None:
        """Finds out whether the node is there, and takes the token."""
        try:
            await self.call("locate", {"name": "@self"})
        except ParleyError as error:
            if error.code != "NOT_PERMITTED":  # a token may be good for other things than looking
                raise

    async def call(self, operation: str, request: Mapping[str, Any]) -> Any:
        """Calls an operation, again and again where that does nothing twice and the node may come back."""

        async def over_link(link: Link, body: bytes) -> Any:
            return await link.call(self._token, operation, body)

        return await self._perform(operation, request, over_link)

    async def ask(self, operation: str, request: Mapping[str, Any]) -> Tuple[Any, Optional[Coming]]:
        """Asks as call does. Over a link, the outcome of what is open follows."""
        coming: Optional[Coming] = None

        async def over_link(link: Link, body: bytes) -> Any:
            nonlocal coming
            asked, coming = await link.ask(self._token, operation, body)
            return asked

        return await self._perform(operation, request, over_link), coming

    async def _perform(
        self, operation: str, request: Mapping[str, Any], over_link: Callable[[Link, bytes], Awaitable[Any]]
    ) -> Any:
        request = requests.with_key(operation, request)
        body = body_of(operation, self._named(request))
        wait = float(request.get("waitMs") or request.get("timeoutMs") or 0) / 1000
        pause, losses = FIRST_PAUSE, 0
        while True:
            link: Optional[Link] = None
            try:
                if losses < _MAX_LOSSES:
                    link = await self._connection.link()
                if link is None:
                    answer = await self._connection.post(self._token, operation, body, wait)
                else:
                    answer = await over_link(link, body)
                self._presence.saw()
                return answer
            except ParleyError:
                self._presence.saw()
                raise
            except Lost as lost:
                if link is not None and not lost.sent:
                    losses = _MAX_LOSSES  # the link has just ended, or has no place for the agent
                    continue
                losses += link is not None
                if link is None:
                    losses = 0  # the node is away: a link again when it is back
                self._presence.check(lost, operation, requests.repeats(operation, request))
            await asyncio.sleep(pause / 2 + random.random() * pause / 2)  # so that not all come at once
            pause = min(2 * pause, LAST_PAUSE)

    async def follow(self, kind: int, request: Mapping[str, Any]) -> AsyncIterator[Dict[str, Any]]:
        """Yields what comes over the link. It ends without a link, when that is lost, and when the agent has too many follows."""
        try:
            link = await self._connection.link()
            if link is None:
                return
            items = link.follow(kind, self._token, body_of("follow", self._named(request)))
            async for item in items:
                self._presence.saw()
                yield item
        except ParleyError as error:
            if kind != frame.FOLLOW or error.code not in ("QUOTA_EXCEEDED", "RATE_LIMITED"):
                raise
        except Lost:
            return  # a call will tell how long to wait for the node

    def _named(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        return request if self._as is None else {"as": self._as, **request}

    async def close(self) -> None:
        """Closes the connection, for all its agents."""
        await self._connection.close()
