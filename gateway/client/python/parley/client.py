"""The client of a node."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type

from . import requests
from .errors import ParleyError
from .follow import Batch, Position, next_batch, parse
from .requests import Shown, Steps, Texts, When, Which, about, list_of, new_key, shown
from .types import Agent, Decision, Field, Item, Message, Outcome, OutputPiece
from .wire import TURN, Deadline, Wire


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
        deadline: When = None,
        need: int = 1,
        veto: bool = True,
        no_self: bool = False,
        remind: Sequence[str] = (),
        escalate: Steps = (),
        timeout: Optional[float] = None,
    ) -> Asked:
        """Sends a form, once, and returns when it is on the node's disk. The same key is the same form, also in another program.

        need hosts have to answer. One decline ends the form, unless veto is False. no_self refuses answers of the own host. remind
        has times as "1h", after which the form is unread again; escalate has pairs as ("4h", "ops") of who may answer then, too.
        """
        form = requests.form(
            recipient,
            description,
            fields,
            title=title,
            name=name,
            key=key,
            deadline=deadline,
            need=need,
            veto=veto,
            no_self=no_self,
            remind=remind,
            escalate=escalate,
        )
        return Asked(self._wire, self.call("form", form, timeout=timeout))

    def request(
        self, recipient: str, text: str, *, name: str = "", key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Asked:
        """Asks for a reference. The value of its answer is under "value"."""
        asked = self.call("request", requests.reference(recipient, text, name=name, key=key), timeout=timeout)
        return Asked(self._wire, asked)

    def approve(
        self,
        tool: str,
        input: Any,  # noqa: A002: as the node calls it
        *,
        recipient: str = "",
        folder: str = "",
        key: Optional[str] = None,
        deadline: When = None,
        attended: bool = False,
        editable: bool = False,
        need: int = 1,
        veto: bool = True,
        remind: Sequence[str] = (),
        escalate: Steps = (),
        timeout: Optional[float] = None,
    ) -> Permission:
        """Asks for permission for a call, which a standing rule or the agent's policy may decide at once.

        With a need over 1 the host has to agree, and others to whom it was forwarded or escalated; no rule decides then.
        """
        approval = requests.approval(
            tool,
            input,
            recipient=recipient,
            folder=folder,
            key=key,
            deadline=deadline,
            attended=attended,
            editable=editable,
            need=need,
            veto=veto,
            remind=remind,
            escalate=escalate,
        )
        return Permission(self._wire, self.call("approve", approval, timeout=timeout))

    def wait(self, form: Which, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until a form has ended, at once if it has, also through restarts of the node."""
        return _await_end(self._wire, form, Deadline(timeout))

    def cancel(self, form: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Takes back a form that the agent asked."""
        return _outcome(self.call("cancel_form", {**about(form), "reason": reason}, timeout=timeout))

    def amend(self, form: Which, *, timeout: Optional[float] = None, **change: Any) -> Message:
        """Corrects the title, description or fields of an open form that the agent asked; note says why."""
        amended: Message = self.call("amend_form", {**about(form), **change}, timeout=timeout)
        return amended

    # What the agent answers.

    def answer(self, form: Shown, values: Mapping[str, Any], *, timeout: Optional[float] = None) -> Outcome:
        """Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open."""
        return _outcome(self.call("respond_form", {**shown(form), "values": values}, timeout=timeout))

    def answer_text(self, form: Shown, texts: Texts, *, timeout: Optional[float] = None) -> Outcome:
        """Answers a form with texts, which are read by the fields' types, as on a command line."""
        return _outcome(self.call("respond_form", {**shown(form), "texts": list_of(texts)}, timeout=timeout))

    def decide(self, decisions: Sequence[Mapping[str, Any]], *, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Decides on approvals, each by its form, the digest of the call that was shown, and the decision."""
        results: List[Dict[str, Any]] = self.call(
            "decide_many", {"decisions": list(decisions), "key": new_key()}, timeout=timeout
        )["results"]
        return results

    def decline(self, form: Shown, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Says no to a form."""
        return _outcome(self.call("decline_form", {**shown(form), "reason": reason}, timeout=timeout))

    def withdraw(self, form: Which, *, timeout: Optional[float] = None) -> bool:
        """Takes back the agent's vote on a form that needs several answers and is open. It returns whether that waits for the
        form's home, which cannot be reached: the vote may still count until then."""
        return bool(self.call("withdraw_vote", about(form), timeout=timeout).get("queued"))

    def forward(self, form: Which, recipient: str, *, timeout: Optional[float] = None) -> None:
        """Hands a form on: whoever answers first settles it."""
        self.call("forward_form", {**about(form), "recipient": recipient}, timeout=timeout)

    def resolve(self, request: Which, name: str, *, timeout: Optional[float] = None) -> Outcome:
        """Gives what was requested: what the agent holds under a name."""
        return _outcome(self.call("resolve", {**about(request), "name": name}, timeout=timeout))

    def reject(self, request: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Says no to a request."""
        return _outcome(self.call("reject", {**about(request), "reason": reason}, timeout=timeout))

    # Messages.

    def send(self, recipient: str, text: str, *, timeout: Optional[float] = None) -> int:
        """Sends words, with references as @edge:name or @name, and returns the number of the message."""
        return int(self.call("send", {"recipient": recipient, "text": text}, timeout=timeout)["number"])

    def reply(self, message: Which, text: str, *, timeout: Optional[float] = None) -> int:
        """Answers a message with words, and returns the number of the answer."""
        return int(self.call("reply", {**about(message), "text": text}, timeout=timeout)["number"])

    def dismiss(self, message: Which, *, timeout: Optional[float] = None) -> None:
        """Drops a message from view."""
        self.call("dismiss", about(message), timeout=timeout)

    def message(self, message: Which, *, timeout: Optional[float] = None) -> Message:
        """Returns one message."""
        got: Message = self.call("get_message", about(message), timeout=timeout)
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
        return _follow(self._wire, view, cursor, Deadline(timeout))

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
        requests.refuse(got)
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
        return requests.answered(self.wait(timeout=timeout))


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
        return requests.decided(self.wait(timeout=timeout))


def _await_end(wire: Wire, form: Which, deadline: Deadline) -> Outcome:
    while True:
        outcome = wire.call("await", {**about(form), "waitMs": int(1000 * deadline.left(TURN))}, deadline)
        if outcome["status"] != "open":
            return _outcome(outcome)


def _outcome(got: Any) -> Outcome:
    outcome: Outcome = got
    return outcome


def _follow(wire: Wire, view: Mapping[str, bool], cursor: str, deadline: Deadline) -> Iterator[Item]:
    at = parse(cursor)
    while True:
        try:
            batch = _batch(wire, view, at, deadline)
        except TimeoutError:
            return
        items, at = batch.items(at)
        yield from items


def _batch(wire: Wire, view: Mapping[str, bool], at: Position, deadline: Deadline) -> Batch:
    steps = next_batch(view, at, max(int(1000 * deadline.left(TURN)), 1))
    response = None
    while True:
        try:
            operation, request = steps.send(response)
        except StopIteration as done:
            batch: Batch = done.value
            return batch
        response = wire.call(operation, request, deadline)
