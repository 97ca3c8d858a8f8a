"""What the clients send: how a message is named, how forms and approvals are asked, and what may be sent again."""

from __future__ import annotations

import secrets
import time
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .errors import ParleyError
from .operations import LOOKS
from .types import Decision, Field, Message, Outcome

Which = Union[int, str]
"""A message's number in the agent's own mailbox, or the ID of a message, form or promise."""

Shown = Union[int, str, Message]
"""A form; as a message, in the revision that it shows: AMENDED if the asker has amended it since."""

Texts = Mapping[str, Union[str, Sequence[str]]]
"""Texts by field, which are read by the fields' types; several for several choices."""

Steps = Sequence[Tuple[str, str]]
"""After which time, as "4h", which other agent may answer too."""

When = Union[datetime, str, None]
"""A time, as a datetime or as text."""

_KEYS = {
    **dict.fromkeys(("form", "request", "approve", "send", "reply", "post", "decide_many"), "key"),
    "send_agent_message": "messageId",
}

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def repeats(operation: str, request: Mapping[str, Any]) -> bool:
    """Reports whether to make a call twice is to make it once."""
    return operation in LOOKS or bool(request.get(_KEYS.get(operation, "")))


def with_key(operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns a request with an idempotency key, if it takes one."""
    member = _KEYS.get(operation)
    return request if member is None or request.get(member) else {**request, member: new_key()}


def new_key() -> str:
    """Returns an idempotency key that is like no other: a ULID."""
    now, letters = int(time.time() * 1000), []
    for _ in range(10):
        letters.append(_LETTERS[now % 32])
        now //= 32
    return "".join(reversed(letters)) + "".join(secrets.choice(_LETTERS) for _ in range(16))


def about(which: Which) -> Dict[str, Any]:
    """Returns the members of a request that name a message."""
    text = str(which)
    return {"number": text} if text.isascii() and text.isdigit() else {"id": text}


def shown(form: Shown) -> Dict[str, Any]:
    """Returns the members of a request that name a form, and the revision that a message shows."""
    if isinstance(form, (int, str)):
        return about(form)
    return {"id": form["messageId"], "revision": form.get("revision") or 1}


def list_of(texts: Texts) -> List[Dict[str, str]]:
    """Returns texts by field as a list."""
    return [{"name": name, "text": t} for name, text in texts.items() for t in ([text] if isinstance(text, str) else text)]


def time_of(at: When) -> str:
    """Returns a time as text, and none as an empty text."""
    if isinstance(at, datetime):
        return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return at or ""


def form(
    recipient: str,
    description: str,
    fields: Sequence[Field],
    *,
    title: str,
    name: str,
    key: Optional[str],
    deadline: When,
    need: int,
    veto: bool,
    no_self: bool,
    remind: Sequence[str],
    escalate: Steps,
) -> Dict[str, Any]:
    """Returns the request that asks a form."""
    made: Dict[str, Any] = {"recipient": recipient, "description": description, "fields": list(fields), "key": key}
    made.update({k: v for k, v in {"title": title, "name": name, "deadline": time_of(deadline), "noSelf": no_self}.items() if v})
    return {**made, **route(need, veto, remind, escalate)}


def route(need: int, veto: bool, remind: Sequence[str], escalate: Steps) -> Dict[str, Any]:
    """Returns the members of a request that say how a form is decided, without those that are as by default."""
    steps = [{"after": after, "to": to} for after, to in escalate]
    made: Dict[str, Any] = {"need": need} if need != 1 else {}
    return {**made, **({} if veto else {"veto": False}), **({"remind": list(remind)} if remind else {}), **({"escalate": steps} if steps else {})}


def reference(recipient: str, text: str, *, name: str, key: Optional[str]) -> Dict[str, Any]:
    """Returns the request that asks for a reference."""
    return {"recipient": recipient, "text": text, "key": key, **({"name": name} if name else {})}


def approval(
    tool: str,
    input: Any,  # noqa: A002: as the node calls it
    *,
    recipient: str,
    folder: str,
    key: Optional[str],
    deadline: When,
    attended: bool,
    editable: bool,
    need: int,
    veto: bool,
    remind: Sequence[str],
    escalate: Steps,
) -> Dict[str, Any]:
    """Returns the request that asks for permission for a call."""
    made: Dict[str, Any] = {"tool": tool, "input": input, "key": key}
    more = {"recipient": recipient, "folder": folder, "deadline": time_of(deadline), "attended": attended, "editable": editable}
    return {**made, **{k: v for k, v in more.items() if v}, **route(need, veto, remind, escalate)}


def answered(outcome: Outcome) -> Any:
    """Returns the values of an answer. It raises DECLINED, CANCELLED or EXPIRED for a form that has ended otherwise."""
    status, note = outcome["status"], outcome.get("note")
    if status == "answered":
        return outcome.get("values")
    code = {"declined": "DECLINED", "expired": "EXPIRED"}.get(status, "CANCELLED")
    raise ParleyError(code, f"form {outcome.get('form')} was {status}" + (f": {note}" if note else ""))


def decided(outcome: Outcome) -> Decision:
    """Returns the decision of an approval that has ended. What nobody has allowed is not allowed."""
    if outcome["status"] != "answered":
        return Decision(False, outcome.get("note") or "")
    reason = (outcome.get("values") or {}).get("reason") or ""
    return Decision(outcome.get("allowed") is True, reason, None, outcome.get("editedInput"))


def refuse(got: Mapping[str, Any]) -> None:
    """Raises the error that a response has within, if any."""
    refused = got.get("error")
    if refused:
        raise ParleyError(refused["code"], refused["message"], refused.get("hint"), refused.get("fields"))
