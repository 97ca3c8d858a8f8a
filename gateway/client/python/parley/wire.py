"""Where a node is, whether it was there, and what may be sent to it."""

from __future__ import annotations

import json
import time
from typing import Any, Mapping, Optional
from urllib.parse import SplitResult, urlsplit

from .errors import Lost, ParleyError
from .operations import MAX_BODY

TURN = 25.0
"""How long one waiting call takes, in seconds. A longer wait is made of several."""

FIRST_PAUSE, LAST_PAUSE = 0.05, 2.0  # seconds between attempts


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
