"""The shapes of what a node takes and returns. The node's /openapi.json has all of them."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, TypedDict


class _Named(TypedDict):
    name: str


class Option(TypedDict, total=False):
    """A choice of a field."""

    value: str
    label: str
    description: str


class Field(_Named, total=False):
    """A field of a form. Its type is text where none is given."""

    label: str
    type: str
    required: bool
    default: Any
    placeholder: str
    help: str
    options: List[Option]
    example: str
    pattern: Any


Ref = TypedDict("Ref", {"$cap": str, "kind": str})
"""A live reference, as answers and messages carry it."""


class Outcome(TypedDict, total=False):
    """How a form has ended."""

    status: str
    form: str
    promise: str
    by: str
    byName: str
    at: str
    note: str
    values: Any
    digest: str
    allowed: bool
    editedInput: str


class Message(TypedDict, total=False):
    """A message or a form, as one mailbox has it."""

    number: int
    id: str
    type: str
    form: str
    promise: str
    at: str
    fromName: str
    toName: str
    title: str
    description: str
    text: str
    fields: List[Field]
    outcome: Outcome
    dismissed: bool
    changed: int
    digest: str


class Agent(TypedDict, total=False):
    """An agent as it is now."""

    id: str
    name: str
    title: str
    status: str
    labels: Dict[str, str]
    error: str


class OutputPiece(TypedDict, total=False):
    """A piece of what an agent's program has put out. The text may begin and end within a line."""

    stream: str
    text: str
    cursor: int


class Decision(NamedTuple):
    """The result of an approval. ``edited_input`` is the input that is allowed instead of the one that was asked, as JSON."""

    allowed: bool
    reason: str = ""
    rule: Optional[str] = None
    edited_input: Optional[str] = None
