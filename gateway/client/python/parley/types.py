"""The shapes of what a node takes and returns, under the names that the clients use. ``parley.operations`` has all of them."""

from __future__ import annotations

from typing import NamedTuple, Optional, TypedDict

from .operations import Envelope as Message
from .operations import Attention, Claimed, Field, File, Lease, Option, Outcome, OutputPiece, Team, Topic, TopicPost
from .operations import Snapshot as Agent

__all__ = [
    "Agent",
    "AgentUpdate",
    "Attention",
    "Claimed",
    "Decision",
    "Field",
    "File",
    "Item",
    "Lease",
    "Message",
    "Option",
    "Outcome",
    "OutputPiece",
    "Ref",
    "Team",
    "Topic",
    "TopicPost",
]

Ref = TypedDict("Ref", {"$cap": str, "kind": str})
"""A live reference, as answers and messages carry it."""


class Item(NamedTuple):
    """A message that came or changed, and the cursor behind it."""

    message: Message
    cursor: str


class AgentUpdate(NamedTuple):
    """An agent as it has become: upsert; or one that is archived or not followed any more: remove."""

    kind: str
    agent: Agent


class Decision(NamedTuple):
    """The result of an approval. ``edited_input`` is the input that is allowed instead of the one that was asked, as JSON."""

    allowed: bool
    reason: str = ""
    rule: Optional[str] = None
    edited_input: Optional[str] = None
