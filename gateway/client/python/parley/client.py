"""The client of a node."""

from __future__ import annotations

import ssl
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union

from .errors import ParleyError
from .follow import Item, follow
from .types import Agent, Decision, Field, Message, Outcome, OutputPiece
from .wire import TURN, Deadline, Wire, new_key

Which = Union[int, str]
"""A message's number in the agent's own mailbox, or the ID of a message, form or promise."""

Texts = Mapping[str, Union[str, Sequence[str]]]
"""Texts by field, which are read by the fields' types; several for several choices."""


def connect(
    url: str,
    token: Optional[str] = None,
    *,
    as_: Optional[str] = None,
    patience: Optional[float] = None,
    tls: Optional[ssl.SSLContext] = None,
    timeout: Optional[float] = None,
) -> Client:
    """Connects to a node. It raises NOT_RUNNING where there is none, and UNAUTHENTICATED if the token is not good.

    ``url`` is http://host:port, https://host:port, or unix:/path/parley.sock, where the node's host needs no token. ``as_`` is
    the name under which the node's host holds the agent to act for. ``patience`` is for how many seconds a node is waited for
    that was there and is not; the default is without end.
    """
    wire = Wire(url, token, as_, patience, tls)
    wire.look(Deadline(timeout))
    return Client(wire)


class Client:
    """Calls a node's operations for one agent. Several threads may use it.

    Every method takes ``timeout`` in seconds and raises TimeoutError after that; what was asked for may still happen. Without
    it a method waits as long as it takes.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes the client's connections. A later call opens one again."""
        self._wire.close()

    def call(self, operation: str, request: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None) -> Any:
        """Performs any of the node's operations. What has a key, or only looks, is made again after a lost connection."""
        return self._wire.call(operation, request or {}, Deadline(timeout))

    # What the agent asks.

    def ask(
        self,
        recipient: str,
        description: str,
        fields: Sequence[Field],
        *,
        title: str = "",
        name: str = "",
        key: Optional[str] = None,
        deadline: Union[datetime, str, None] = None,
        need: int = 1,
        veto: bool = True,
        no_self: bool = False,
        timeout: Optional[float] = None,
    ) -> Asked:
        """Sends a form, once, and returns when it is on the node's disk. The same key is the same form, also in another program.

        need hosts have to answer. One decline ends the form, unless veto is False. no_self refuses answers of the own host.
        """
        form: Dict[str, Any] = {"recipient": recipient, "description": description, "fields": list(fields), "key": key or new_key()}
        form.update({k: v for k, v in {"title": title, "name": name, "deadline": _time(deadline), "noSelf": no_self}.items() if v})
        form.update({**({"need": need} if need != 1 else {}), **({} if veto else {"veto": False})})
        return Asked(self._wire, self.call("form", form, timeout=timeout))

    def request(
        self, recipient: str, text: str, *, name: str = "", key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Asked:
        """Asks for a reference. The value of its answer is under "value"."""
        request = {"recipient": recipient, "text": text, "key": key or new_key(), **({"name": name} if name else {})}
        return Asked(self._wire, self.call("request", request, timeout=timeout))

    def approve(
        self,
        tool: str,
        input: Any,  # noqa: A002: as the node calls it
        *,
        recipient: str = "",
        folder: str = "",
        key: Optional[str] = None,
        deadline: Union[datetime, str, None] = None,
        attended: bool = False,
        editable: bool = False,
        timeout: Optional[float] = None,
    ) -> Permission:
        """Asks for permission for a call, which a standing rule or the agent's policy may decide at once."""
        approval: Dict[str, Any] = {"tool": tool, "input": input, "key": key or new_key()}
        more = {"recipient": recipient, "folder": folder, "deadline": _time(deadline), "attended": attended, "editable": editable}
        approval.update({k: v for k, v in more.items() if v})
        return Permission(self._wire, self.call("approve", approval, timeout=timeout))

    def wait(self, form: Which, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until a form has ended, at once if it has, also through restarts of the node."""
        return _await_end(self._wire, form, Deadline(timeout))

    def cancel(self, form: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Takes back a form that the agent asked."""
        return _outcome(self.call("cancel_form", {**_about(form), "reason": reason}, timeout=timeout))

    def amend(self, form: Which, *, timeout: Optional[float] = None, **change: Any) -> Message:
        """Corrects the title, description or fields of an open form that the agent asked; note says why."""
        amended: Message = self.call("amend_form", {**_about(form), **change}, timeout=timeout)
        return amended

    # What the agent answers.

    def answer(self, form: Which, values: Mapping[str, Any], *, timeout: Optional[float] = None) -> Outcome:
        """Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open."""
        return _outcome(self.call("respond_form", {**_about(form), "values": values}, timeout=timeout))

    def answer_text(self, form: Which, texts: Texts, *, timeout: Optional[float] = None) -> Outcome:
        """Answers a form with texts, which are read by the fields' types, as on a command line."""
        return _outcome(self.call("respond_form", {**_about(form), "texts": _list_of(texts)}, timeout=timeout))

    def decide(self, decisions: Sequence[Mapping[str, Any]], *, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Decides on approvals, each by its form, the digest of the call that was shown, and the decision."""
        results: List[Dict[str, Any]] = self.call(
            "decide_many", {"decisions": list(decisions), "key": new_key()}, timeout=timeout
        )["results"]
        return results

    def decline(self, form: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Says no to a form."""
        return _outcome(self.call("decline_form", {**_about(form), "reason": reason}, timeout=timeout))

    def withdraw(self, form: Which, *, timeout: Optional[float] = None) -> None:
        """Takes back the agent's vote on a form that needs several answers and is open."""
        self.call("withdraw_vote", _about(form), timeout=timeout)

    def forward(self, form: Which, recipient: str, *, timeout: Optional[float] = None) -> None:
        """Hands a form on: whoever answers first settles it."""
        self.call("forward_form", {**_about(form), "recipient": recipient}, timeout=timeout)

    def resolve(self, request: Which, name: str, *, timeout: Optional[float] = None) -> Outcome:
        """Gives what was requested: what the agent holds under a name."""
        return _outcome(self.call("resolve", {**_about(request), "name": name}, timeout=timeout))

    def reject(self, request: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Says no to a request."""
        return _outcome(self.call("reject", {**_about(request), "reason": reason}, timeout=timeout))

    # Messages.

    def send(self, recipient: str, text: str, *, timeout: Optional[float] = None) -> int:
        """Sends words, with references as @edge:name or @name, and returns the number of the message."""
        return int(self.call("send", {"recipient": recipient, "text": text}, timeout=timeout)["number"])

    def reply(self, message: Which, text: str, *, timeout: Optional[float] = None) -> int:
        """Answers a message with words, and returns the number of the answer."""
        return int(self.call("reply", {**_about(message), "text": text}, timeout=timeout)["number"])

    def dismiss(self, message: Which, *, timeout: Optional[float] = None) -> None:
        """Drops a message from view."""
        self.call("dismiss", _about(message), timeout=timeout)

    def message(self, message: Which, *, timeout: Optional[float] = None) -> Message:
        """Returns one message."""
        got: Message = self.call("get_message", _about(message), timeout=timeout)
        return got

    def inbox(self, *, timeout: Optional[float] = None, **view: bool) -> List[Message]:
        """Lists the messages of a view by number: all, pending, snoozed, done or unread. Without one that is what was received
        and not dismissed."""
        messages: List[Message] = []
        first, deadline = 0, Deadline(timeout)
        while True:
            page = self._wire.call("list_messages", {**view, "first": first}, deadline)
            messages.extend(page["messages"])
            first = page.get("next") or 0
            if not first:
                return messages

    def follow(self, cursor: str = "", *, timeout: Optional[float] = None, **view: bool) -> Iterator[Item]:
        """Yields the messages of a view as they are after a cursor, then each that comes or changes, until the timeout.

        It goes on through restarts of the node. To follow from the cursor of an item yields what came after it, each change
        once, in this program or the next.
        """
        return follow(self._wire, view, cursor, Deadline(timeout))

    # Names.

    def names(self, path: str = "", *, timeout: Optional[float] = None) -> List[str]:
        """Lists the names that the agent holds, or those within what stands under a path."""
        names: List[str] = []
        after, deadline = "", Deadline(timeout)
        while True:
            page = self._wire.call("list_names", {"path": path, "after": after}, deadline)
            names.extend(page["names"])
            after = page.get("next") or ""
            if not after:
                return names

    def lookup(self, name: str, *, reveal: bool = False, timeout: Optional[float] = None) -> Any:
        """Returns the value under a name; a reference is a Ref."""
        return self.call("lookup", {"name": name, "reveal": reveal}, timeout=timeout).get("value")

    def store(self, name: str, value: Any, *, timeout: Optional[float] = None) -> None:
        """Puts a value under a name."""
        self.call("store_name", {"name": name, "value": value}, timeout=timeout)

    # Agents.

    def agents(self, *, timeout: Optional[float] = None, **filter: Any) -> List[Agent]:  # noqa: A002
        """Lists the agents that the client's agent sees, the oldest first; labels and statuses select."""
        agents: List[Agent] = []
        after, deadline = "", Deadline(timeout)
        while True:
            page = self._wire.call("fetch_agents", {"filter": filter, "after": after}, deadline)
            agents.extend(page["agents"])
            after = page.get("next") or ""
            if not after:
                return agents

    def prompt(self, agent: str, text: str, *, message_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Sends a message to an agent at work, once, and returns when it is accepted."""
        got: Dict[str, Any] = self.call(
            "send_agent_message", {"agentId": agent, "text": text, "messageId": message_id or new_key()}, timeout=timeout
        )
        refused = got.get("error")
        if refused:
            raise ParleyError(refused["code"], refused["message"], refused.get("hint"), refused.get("fields"))
        return got

    def wait_for_agent(self, agent: str, *, timeout: Optional[float] = None) -> str:
        """Waits until an agent has nothing more to do, and returns idle, error, or permission, for which it waits."""
        deadline = Deadline(timeout)
        while True:
            wait = int(1000 * deadline.left(TURN)) + 1
            status = self._wire.call("wait_for_finish", {"agentId": agent, "timeoutMs": wait}, deadline)["status"]
            if status != "timeout":
                return str(status)

    def output(
        self, agent: str, after: int = 0, *, follow: bool = False, timeout: Optional[float] = None
    ) -> Iterator[OutputPiece]:
        """Yields what an agent's program has put out after a cursor, the oldest first, and with follow what comes."""
        deadline = Deadline(timeout)
        while True:
            wait = {"waitMs": int(1000 * deadline.left(TURN))} if follow else {}
            page = self._wire.call("read_output", {"agentId": agent, "after": after, **wait}, deadline)
            yield from page["pieces"]
            if not page["pieces"] and not follow:
                return
            after = page["cursor"]


class Asked:
    """A form that was asked, and is on the node's disk.

    ``form`` is None if nothing was asked, because the name for the answer is bound already. ``number`` is that of the form in
    the asker's mailbox. ``unreachable`` says that the recipient's node cannot be reached now; the form goes there when it can.
    """

    def __init__(self, wire: Wire, asked: Mapping[str, Any]) -> None:
        self._wire = wire
        self._outcome: Optional[Outcome] = asked.get("outcome")
        self.form: Optional[str] = asked.get("form")
        self.promise: Optional[str] = asked.get("promise")
        self.number: int = asked.get("number", 0)
        self.unreachable: bool = asked.get("unreachable", False)

    def wait(self, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until the form has ended, at once if it has, also through restarts of the node."""
        if self._outcome is None or self._outcome["status"] == "open":
            self._outcome = _await_end(self._wire, self.form or "", Deadline(timeout))
        return self._outcome

    def answer(self, *, timeout: Optional[float] = None) -> Any:
        """Waits for the answer's values. A form that ends otherwise raises DECLINED, CANCELLED or EXPIRED."""
        outcome = self.wait(timeout=timeout)
        status, note = outcome["status"], outcome.get("note")
        if status == "answered":
            return outcome.get("values")
        code = {"declined": "DECLINED", "expired": "EXPIRED"}.get(status, "CANCELLED")
        raise ParleyError(code, f"form {outcome.get('form')} was {status}" + (f": {note}" if note else ""))


class Permission(Asked):
    """An approval that was asked for: a standing rule or the agent's policy has decided it, or it is a form.

    ``unattended`` says, of an approval that was to be attended, that nobody follows the mail of who would decide.
    """

    def __init__(self, wire: Wire, permission: Mapping[str, Any]) -> None:
        super().__init__(wire, permission)
        self.unattended: bool = permission.get("unattended", False)
        self._decision: Optional[Decision] = None
        if permission.get("decided"):
            self._decision = Decision(permission.get("allowed") is True, "", permission.get("rule"))

    def decision(self, *, timeout: Optional[float] = None) -> Decision:
        """Waits for the decision. What was declined, cancelled or has expired is not allowed, nor what another than the host has
        decided. Where nothing was asked, as unattended says, it raises NO_PENDING_PERMISSION."""
        if self._decision is not None:
            return self._decision
        if self.unattended and self.form is None:
            raise ParleyError("NO_PENDING_PERMISSION", "nobody follows the mail of who would decide, and nothing was asked")
        outcome = self.wait(timeout=timeout)
        if outcome["status"] != "answered":
            return Decision(False, outcome.get("note") or "")
        reason = (outcome.get("values") or {}).get("reason") or ""
        return Decision(outcome.get("allowed") is True, reason, None, outcome.get("editedInput"))


def _await_end(wire: Wire, form: Which, deadline: Deadline) -> Outcome:
    while True:
        outcome = wire.call("await", {**_about(form), "waitMs": int(1000 * deadline.left(TURN))}, deadline)
        if outcome["status"] != "open":
            return _outcome(outcome)


def _outcome(got: Any) -> Outcome:
    outcome: Outcome = got
    return outcome


def _about(which: Which) -> Dict[str, str]:
    """Returns the members of a request that name a message."""
    text = str(which)
    return {"number": text} if text.isascii() and text.isdigit() else {"id": text}


def _list_of(texts: Texts) -> List[Dict[str, str]]:
    return [{"name": name, "text": t} for name, text in texts.items() for t in ([text] if isinstance(text, str) else text)]


def _time(at: Union[datetime, str, None]) -> str:
    if isinstance(at, datetime):
        return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return at or ""
