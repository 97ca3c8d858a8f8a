"""Following a mailbox: each change once, from any cursor on. Nothing here waits: the clients make the calls."""

from __future__ import annotations

import re
from typing import Any, Dict, Generator, List, Mapping, NamedTuple, Tuple

from .errors import ParleyError
from .types import Item, Message


class Position(NamedTuple):
    """How far following has come: all that changed up to seen was told, and, of what changed from there to up_to, if that
    is not 0, the messages up to a number. A cursor is its text; the node's WebSockets have the same."""

    seen: int
    up_to: int = 0
    number: int = 0

    def text(self) -> str:
        return f"{self.seen}" if self.up_to == 0 else f"{self.seen}.{self.up_to}.{self.number}"

    @property
    def is_between(self) -> bool:
        """Reports whether all was told up to a change: from there a node can send what comes."""
        return self.seen > 0 and self.up_to == 0


class Batch(NamedTuple):
    """Messages that changed together, up to end. If next is not 0, there are more of them from that number on."""

    messages: List[Message]
    end: int
    next: int = 0

    def items(self, at: Position) -> Tuple[List[Item], Position]:
        """Returns the messages with their cursors, and the position behind them."""
        items = []
        for i, message in enumerate(self.messages):
            is_last = i == len(self.messages) - 1 and self.next == 0
            here = Position(self.end) if is_last else Position(at.seen, self.end, message["number"])
            items.append(Item(message, here.text()))
        return items, Position(self.end) if self.next == 0 else Position(at.seen, self.end, self.next - 1)


Steps = Generator[Tuple[str, Dict[str, Any]], Any, Batch]
"""Yields calls to make, is sent their responses, and returns the batch."""


def parse(cursor: str) -> Position:
    """Reads a cursor."""
    if cursor == "":
        return Position(0)
    if re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18}){0,2}", cursor, re.ASCII):
        at = Position(*(int(part) for part in cursor.split(".")))
        if at.text() == cursor and (at.up_to == 0 or at.up_to >= at.seen):
            return at
    raise ParleyError("INVALID_ARGUMENT", f"{cursor[:80]!r} is not a cursor")


def next_batch(view: Mapping[str, bool], at: Position, wait_ms: int) -> Steps:
    """Waits for what changed after a position."""
    if at.seen == 0:
        return (yield from _page(view, at))
    if at.up_to == 0:
        got = yield "follow_messages", {**view, "cursor": at.seen, "waitMs": wait_ms}
        return Batch(got["messages"], got["cursor"])
    got = yield "follow_messages", {**view, "cursor": at.seen, "waitMs": 0}
    if at.seen < got["cursor"] < at.up_to:
        return (yield from _page(view, at))  # not all fit: a cursor has room for a number only
    return Batch([m for m in got["messages"] if m["changed"] <= at.up_to and m["number"] > at.number], at.up_to)


def _page(view: Mapping[str, bool], at: Position) -> Steps:
    """Takes the next by number; a message that changed again later follows after the end."""
    first = 0 if at.up_to == 0 else at.number + 1
    got = yield "list_messages", {**view, "first": first}
    end = at.up_to or max(got["cursor"], 1)  # a mailbox begins with its agent's making
    return Batch([m for m in got["messages"] if at.seen < m["changed"] <= end], end, got.get("next") or 0)
