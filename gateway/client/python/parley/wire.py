"""The way to a node: HTTP over TCP, TLS or a Unix socket, with connections that are kept and calls that are repeated."""

from __future__ import annotations

import http.client
import json
import random
import select
import socket
import ssl
import threading
import time
from typing import Any, Dict, List, Mapping, Optional
from urllib.parse import SplitResult, urlsplit

from .errors import Lost, ParleyError, refusal_in
from .operations import MAX_BODY
from .requests import repeats

TURN = 25.0
"""How long one waiting call takes, in seconds. A longer wait is made of several."""

_GRACE = 60.0  # seconds that a response may take beyond the wait that the call asks for
FIRST_PAUSE, LAST_PAUSE = 0.05, 2.0  # seconds between attempts
_MAX_IDLE = 8  # connections that are kept

class Deadline:
    """The end of a caller's patience with one call."""

    def __init__(self, timeout: Optional[float]) -> None:
        self._end = None if timeout is None else time.monotonic() + timeout

    def left(self, at_most: float) -> float:
        """Returns the seconds that are left, at most some. It raises TimeoutError when there are none."""
        if self._end is None:
            return at_most
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("no answer in the time given; what was asked for may still happen")
        return min(left, at_most)


class Presence:
    """Knows when a node was last there, and whether a lost call is to be made again."""

    def __init__(self, url: str, patience: Optional[float]) -> None:
        self.url = url
        self._patience = patience
        self._seen: Optional[float] = None

    def saw(self) -> None:
        """Notes that the node is there."""
        self._seen = time.monotonic()

    def check(self, lost: Lost, operation: str, harmless: bool) -> None:
        """Raises the caller's error for a lost call, unless it is to be made again."""
        if lost.sent:
            self.saw()
        if self._seen is not None and (harmless or not lost.sent):
            if self._patience is None or time.monotonic() - self._seen <= self._patience:
                return
        if isinstance(lost.cause, ParleyError):
            raise lost.cause
        if not lost.sent or self._seen is None:
            raise ParleyError("NOT_RUNNING", f"no node answers at {self.url}", "start one with: parley start") from lost.cause
        said = "the node went away before it answered"
        raise ParleyError(
            "NOT_RUNNING",
            f"{said} {operation}" if harmless else f"{said}; whether {operation} was done is not known",
            "parley status --wait 15s says when it is back",
        ) from lost.cause


def parts_of(url: str) -> SplitResult:
    """Reads a node's URL."""
    parts = urlsplit(url)
    if not (parts.scheme in ("http", "https") and parts.hostname) and not (parts.scheme == "unix" and parts.path):
        raise ParleyError("INVALID_ARGUMENT", f"{url!r} is not a node's URL: want http://host:port or unix:/path/parley.sock")
    return parts


def body_of(operation: str, request: Mapping[str, Any]) -> bytes:
    """Returns a request as JSON. A node hangs up on one that is too large, perhaps before it can be told so."""
    try:
        body = json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a character
        body = json.dumps(request, separators=(",", ":")).encode()
    if len(body) > MAX_BODY:
        raise ParleyError("TOO_LARGE", f"a request may have {MAX_BODY} bytes at most, and that to {operation} has {len(body)}")
    return body


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("parley")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Wire:
    """Calls operations for one agent. It may be used by several threads."""

    def __init__(
        self, url: str, token: Optional[str], as_: Optional[str], patience: Optional[float], tls: Optional[ssl.SSLContext]
    ) -> None:
        parts = parts_of(url)
        self._parts, self._token, self._as, self._tls = parts, token, as_, tls
        self._presence = Presence(url, patience)
        self._prefix = "" if parts.scheme == "unix" else parts.path.rstrip("/")
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Closes the connections that are kept."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def call(self, operation: str, request: Mapping[str, Any], deadline: Deadline) -> Any:
        """Calls an operation, again and again where that does nothing twice and the node may come back."""
        named = dict(request) if self._as is None else {"as": self._as, **request}
        body = body_of(operation, named)
        waits = float(named.get("waitMs") or named.get("timeoutMs") or 0) / 1000
        pause = FIRST_PAUSE
        while True:
            try:
                answer = self._once(operation, body, deadline.left(waits + _GRACE))
                self._presence.saw()
                return answer
            except ParleyError:
                self._presence.saw()
                raise
            except Lost as lost:
                deadline.left(0)
                self._presence.check(lost, operation, repeats(operation, request))
            time.sleep(deadline.left(pause / 2 + random.random() * pause / 2))  # so that not all come at once
            pause = min(2 * pause, LAST_PAUSE)

    def look(self, deadline: Deadline) -> None:
        """Finds out whether the node is there, and takes the token."""
        try:
            self.call("locate", {"name": "@self"}, deadline)
        except ParleyError as error:
            if error.code != "NOT_PERMITTED":  # a token may be good for other things than looking
                raise

    def _once(self, operation: str, body: bytes, timeout: float) -> Any:
        connection = self._take(timeout)
        headers: Dict[str, str] = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request("POST", f"{self._prefix}/rpc/{operation}", body, headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as cause:
            connection.close()
            raise Lost(True, cause) from cause
        except BaseException:  # the caller interrupts: the answer of this call must not be read as that of the next
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._keep(connection)
        if response.status != 200:
            raise refusal_in(response.status, text)
        try:
            return json.loads(text)
        except ValueError as cause:
            raise ParleyError("INTERNAL", f"the node's answer to {operation} cannot be read") from cause

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        """Returns an open connection: one that is kept and was not closed by the node, or a new one."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                break
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                connection.sock.settimeout(timeout)
                return connection
            connection.close()
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "unix":
            connection = _UnixConnection(self._parts.path)
        elif self._parts.scheme == "https":
            connection = http.client.HTTPSConnection(host, port or 443, context=self._tls)
        else:
            connection = http.client.HTTPConnection(host, port or 80)
        connection.timeout = timeout
        try:
            connection.connect()
        except ssl.SSLCertVerificationError:
            connection.close()
            raise
        except OSError as cause:
            connection.close()
            raise Lost(False, cause) from cause
        if connection.sock.family != getattr(socket, "AF_UNIX", None):
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _keep(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()
