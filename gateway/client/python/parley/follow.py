"""Following a mailbox: each change once, from any cursor on."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

from .errors import ParleyError
from .types import Message
from .wire import TURN, Deadline, Wire


class Item(NamedTuple):
    """A message that came or changed, and the cursor behind it."""

    message: Message
    cursor: str


class _Position(NamedTuple):
    """How far following has come: all that changed up to seen was told, and, of what changed from there to up_to, if that
    is not 0, the messages up to a number. A cursor is its text; the node's WebSockets have the same."""

    seen: int
    up_to: int = 0
    number: int = 0

    def text(self) -> str:
        return f"{self.seen}" if self.up_to == 0 else f"{self.seen}.{self.up_to}.{self.number}"


class _Batch(NamedTuple):
    """Messages that changed together, up to end. If next is not 0, there are more of them from that number on."""

    messages: List[Message]
    end: int
    next: int = 0


def _parse(cursor: str) -> _Position:
    if cursor == "":
        return _Position(0)
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18}){0,2}", cursor, re.ASCII):
        at = _Position(*(int(part) for part in cursor.split(".")))
        if at.text() == cursor and (at.up_to == 0 or at.up_to >= at.seen):
            return at
    raise ParleyError("INVALID_ARGUMENT", f"{cursor[:80]!r} is not a cursor")


def follow(wire: Wire, view: Mapping[str, bool], cursor: str, deadline: Deadline) -> Iterator[Item]:
    """Yields what came or changed after a cursor, until the deadline."""
    at = _parse(cursor)
    while True:
        try:
            batch = _next(wire, view, at, deadline)
        except TimeoutError:
            return
        if batch.next == 0:
            after = _Position(batch.end)
        else:
            after = _Position(at.seen, batch.end, batch.next - 1)
        for i, message in enumerate(batch.messages):
            is_last = i == len(batch.messages) - 1 and batch.next == 0
            here = after if is_last else _Position(at.seen, batch.end, message["number"])
            yield Item(message, here.text())
        at = after


def _next(wire: Wire, view: Mapping[str, bool], at: _Position, deadline: Deadline) -> _Batch:
    def changes(wait: float) -> Dict[str, Any]:
        got = wire.call("follow_messages", {**view, "cursor": at.seen, "waitMs": int(wait * 1000)}, deadline)
        return dict(got)

    def page() -> _Batch:  # the next by number; a message that changed again later follows after the end
        first = 0 if at.up_to == 0 else at.number + 1
        got = wire.call("list_messages", {**view, "first": first}, deadline)
        end = at.up_to or max(got["cursor"], 1)  # a mailbox begins with its agent's making
        return _Batch([m for m in got["messages"] if at.seen < m["changed"] <= end], end, got.get("next") or 0)

    if at.seen == 0:
        return page()
    if at.up_to == 0:
        got = changes(max(deadline.left(TURN), 0.001))
        return _Batch(got["messages"], got["cursor"])
    got = changes(0)
    if at.seen < got["cursor"] < at.up_to:
        return page()  # not all fit: a cursor has room for a number only
    return _Batch([m for m in got["messages"] if m["changed"] <= at.up_to and m["number"] > at.number], at.up_to)
