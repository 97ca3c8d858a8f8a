"""The client for asyncio: all calls, waits and follows of a program on one connection.

The connection opens by itself, again after it was lost, and where no WebSocket gets through, calls go by HTTP. What asks has a
key and is asked again: it arrives once. A wait goes on through restarts of the node, and a follow where it stood.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
from types import TracebackType
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Sequence, Type, Union, cast

from . import frame, requests
from .aio_wire import AsyncWire, Connection
from .errors import Lost, ParleyError
from .follow import Batch, Position, next_batch, parse
from .link import Coming
from .requests import Shown, Steps, Texts, When, Which, about, list_of, shown
from .types import Agent, AgentUpdate, Attention, Claimed, Decision, Field, File, Item, Lease, Message, Outcome, OutputPiece, Team, Topic, TopicPost
from .wire import TURN, Presence

__all__ = ["AsyncAsked", "AsyncClient", "AsyncPermission", "connect"]

_TURN_MS = int(1000 * TURN)
PART_BYTES = 96 * 1024  # of a file that is stored
_REST = 0.5  # seconds before agents are followed again


def connect(
    url: str,
    token: Optional[str] = None,
    *,
    as_: Optional[str] = None,
    patience: Optional[float] = None,
    tls: Optional[ssl.SSLContext] = None,
) -> AsyncClient:
    """Connects to a node: ``async with parley.aio.connect(url, token) as client``, or ``client = await ...open()``.

    To enter it raises NOT_RUNNING where there is no node, and UNAUTHENTICATED if the token is not good. ``url`` is
    http://host:port, https://host:port, or unix:/path/parley.sock, where the node's host needs no token. ``as_`` is the name
    under which the node's host holds the agent to act for. ``patience`` is for how many seconds a node is waited for that was
    there and is not; the default is without end.
    """
    return AsyncClient(AsyncWire(Connection(url, token, tls, Presence(url, patience)), token, as_))


class AsyncClient:
    """Calls a node's operations for one agent, from one event loop. Any number of its tasks may call, wait and follow at once.

    To cancel a call, or ``asyncio.timeout`` around it, ends the waiting; what was asked for may still happen.
    """

    def __init__(self, wire: AsyncWire) -> None:
        self._wire = wire

    async def open(self) -> AsyncClient:
        """Finds out whether the node is there, and takes the token."""
        await self._wire.look()
        return self

    async def __aenter__(self) -> AsyncClient:
        try:
            return await self.open()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection, also for the agents that were signed in beside."""
        await self._wire.close()

    async def sign_in(self, token: Optional[str] = None, *, as_: Optional[str] = None) -> AsyncClient:
        """Returns a client for another agent over the same connection: of a token, or of a name under which the host holds it."""
        return await AsyncClient(self._wire.beside(token, as_)).open()

    async def call(self, operation: str, request: Optional[Mapping[str, Any]] = None) -> Any:
        """Performs any of the node's operations. What only looks, or has a key, which it is given, is made again after a loss."""
        return await self._wire.call(operation, request or {})

    # What the agent asks.

    async def ask(
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
    ) -> AsyncAsked:
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
        return AsyncAsked(self._wire, *await self._wire.ask("form", form))

    async def request(self, recipient: str, text: str, *, name: str = "", key: Optional[str] = None) -> AsyncAsked:
        """Asks for a reference. The value of its answer is under "value"."""
        request = requests.reference(recipient, text, name=name, key=key)
        return AsyncAsked(self._wire, *await self._wire.ask("request", request))

    async def approve(
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
    ) -> AsyncPermission:
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
        return AsyncPermission(self._wire, *await self._wire.ask("approve", approval))

    async def wait(self, form: Which) -> Outcome:
        """Waits until a form has ended, at once if it has, also through restarts of the node."""
        return await _await_end(self._wire, form)

    async def wait_state(self, message: Which, until: str, *, of_all: bool = False) -> Outcome:
        """Waits until a message that the agent sent is delivered, offered, shown or handled, at once if it has come further, also
        through restarts of the node. The status of the outcome is the state that it is in; "declined" if its recipient refused it.
        With of_all, of a message to a group, it waits for each member that it reached, whoever has replied for the group."""
        return await _await_end(self._wire, message, until, of_all=of_all)

    async def cancel(self, form: Which, reason: str = "") -> Outcome:
        """Takes back a form that the agent asked."""
        return _outcome(await self.call("cancel_form", {**about(form), "reason": reason}))

    async def amend(self, form: Which, **change: Any) -> Message:
        """Corrects the title, description or fields of an open form that the agent asked; note says why."""
        amended: Message = await self.call("amend_form", {**about(form), **change})
        return amended

    # What the agent answers.

    async def answer(self, form: Shown, values: Mapping[str, Any]) -> Outcome:
        """Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open."""
        return _outcome(await self.call("respond_form", {**shown(form), "values": values}))

    async def answer_text(self, form: Shown, texts: Texts) -> Outcome:
        """Answers a form with texts, which are read by the fields' types, as on a command line."""
        return _outcome(await self.call("respond_form", {**shown(form), "texts": list_of(texts)}))

    async def decide(self, decisions: Sequence[Mapping[str, Any]]) -> List[Dict[str, Any]]:
        """Decides on approvals, each by its form, the digest of the call that was shown, and the decision."""
        got = await self.call("decide_many", {"decisions": list(decisions)})
        results: List[Dict[str, Any]] = got["results"]
        return results

    async def decline(self, form: Shown, reason: str = "") -> Outcome:
        """Says no to a form."""
        return _outcome(await self.call("decline_form", {**shown(form), "reason": reason}))

    async def claim(self, form: Which, seconds: float = 1800, take_over: bool = False) -> Claimed:
        """Is on a form that others may answer too, for a time: they see it. CLAIMED refuses what another is on, unless it is taken over."""
        return cast(Claimed, await self.call("claim_form", {**about(form), "forMs": int(seconds * 1000), "takeOver": take_over}))

    async def release(self, form: Which) -> Claimed:
        """Is on a form no more."""
        return cast(Claimed, await self.call("claim_form", {**about(form), "release": True}))

    async def withdraw(self, form: Which) -> bool:
        """Takes back the agent's vote on a form that needs several answers and is open. It returns whether that waits for the
        form's home, which cannot be reached: the vote may still count until then."""
        return bool((await self.call("withdraw_vote", about(form))).get("queued"))

    async def forward(self, form: Which, recipient: str) -> None:
        """Hands a form on: whoever answers first settles it."""
        await self.call("forward_form", {**about(form), "recipient": recipient})

    async def resolve(self, request: Which, name: str) -> Outcome:
        """Gives what was requested: what the agent holds under a name."""
        return _outcome(await self.call("resolve", {**about(request), "name": name}))

    async def reject(self, request: Which, reason: str = "") -> Outcome:
        """Says no to a request."""
        return _outcome(await self.call("reject", {**about(request), "reason": reason}))

    # Messages.

    async def send(self, recipient: Union[str, Sequence[str]], text: str) -> int:
        """Sends words, with references as @edge:name or @name, and returns the number of the message. Several recipients all get it, or
        nobody does."""
        whom = {"recipient": recipient} if isinstance(recipient, str) else {"recipients": list(recipient)}
        return int((await self.call("send", {**whom, "text": text}))["number"])

    async def reply(self, message: Which, text: str, *, to_all: bool = False) -> int:
        """Answers a message with words, and returns the number of the answer. With to_all, the other recipients of the message get it too,
        as far as the agent can reach them."""
        return int((await self.call("reply", {**about(message), "all": to_all, "text": text}))["number"])

    async def acknowledge(self, message: Which) -> None:
        """Tells the sender of a message that the agent has taken note of it. A reply does so too."""
        await self.call("acknowledge", about(message))

    async def lease(self, *patterns: str, **how: Any) -> Lease:
        """Asks for a lease on files or names, as src/checkout/** or port:3000. How is the members of the operation lease: folder, ttlMs,
        shared, for, team, waitMs. With waitMs it waits in the queue: await_lease tells when it is held."""
        return cast(Lease, await self.call("lease", {"patterns": list(patterns), **how}))

    async def await_lease(self, lease: int) -> Lease:
        """Waits until a lease is held, or has ended, which its state says then."""
        while True:
            now = cast(Lease, await self.call("await_lease", {"lease": lease}))
            if now["state"] != "waiting":
                return now

    async def release_lease(self, lease: int) -> None:
        """Releases a lease, or waits for it no longer."""
        await self.call("release_lease", {"lease": lease})

    async def leases(self) -> List[Lease]:
        """Lists the agent's leases, and those by which others keep it from writing."""
        return cast(List[Lease], (await self.call("list_leases"))["leases"])

    async def teams(self) -> List[Team]:
        """Lists the teams that the agent is in, and who is there."""
        return cast(List[Team], (await self.call("list_teams"))["teams"])

    async def set_team(self, team: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> List[Team]:
        """Adds agents to a team of the host's, which it makes if there is none with the name, and removes others."""
        return cast(List[Team], (await self.call("set_team", {"team": team, "add": list(add), "remove": list(remove)}))["teams"])

    async def end_team(self, team: str) -> None:
        """Ends a team of the host's, which all members leave."""
        await self.call("end_team", {"team": team})

    async def topics(self) -> List[Topic]:
        """Lists the topics that the agent may join."""
        return cast(List[Topic], (await self.call("list_topics"))["topics"])

    async def make_topic(self, topic: str, *, team: str = "") -> Topic:
        """Makes a topic of the host's: for all its agents, or for the members of a team."""
        return cast(Topic, await self.call("make_topic", {"topic": topic, "team": team}))

    async def end_topic(self, topic: str) -> None:
        """Ends a topic of the host's."""
        await self.call("end_topic", {"topic": topic})

    async def subscribe(self, topic: str, *, every: float = 0, stream: bool = False) -> Topic:
        """Has the agent get the posts of a topic: as digests, so many seconds at most after a post (default an hour), or as a stream."""
        return cast(Topic, await self.call("subscribe", {"topic": topic, "everyMs": int(1000 * every), "stream": stream}))

    async def unsubscribe(self, topic: str) -> Topic:
        """Ends the agent's subscription."""
        return cast(Topic, await self.call("subscribe", {"topic": topic, "end": True}))

    async def post(self, topic: str, text: str, *, subject: str = "", key: str = "") -> int:
        """Sends a post to a topic, and returns its number in the agent's own mailbox. With the same key it is posted once."""
        return int((await self.call("post", {"topic": topic, "text": text, "subject": subject, "key": key}))["number"])

    async def posts(self, topic: str, *, before: int = 0, limit: int = 0) -> List[TopicPost]:
        """Returns the posts of a topic that came last before a number, the oldest first: 100 at most."""
        return cast(List[TopicPost], (await self.call("list_posts", {"topic": topic, "before": before, "limit": limit}))["posts"])

    async def attention(self) -> Attention:
        """Returns how mail reaches the sessions of the coding agent."""
        return cast(Attention, await self.call("get_attention"))

    async def set_attention(self, **change: Any) -> Attention:
        """Sets how mail reaches the sessions of the coding agent: allSessions, quiet, zone, interruptions. What is left out stays."""
        return cast(Attention, await self.call("set_attention", change))

    async def store_file(self, name: str, content: bytes, *, type: str = "") -> File:  # noqa: A002
        """Stores a file of 32 MiB at most, part by part, and returns what a message or an answer says of it. The name is one without a
        path."""
        request: Dict[str, Any] = {"size": len(content)}
        offset = 0
        while True:
            part = content[offset : offset + PART_BYTES]
            at = await self.call("store_file", {**request, "offset": offset, "data": base64.b64encode(part).decode()})
            if at.get("digest"):
                stored: File = {"digest": at["digest"], "name": name, "size": len(content)}
                if type:
                    stored["type"] = type
                return stored
            request, offset = {"upload": at["upload"]}, at["offset"]

    async def fetch_file(self, message: Which, file: File) -> bytes:
        """Returns the content of a file that a message of the agent carries, or the answer to a form. It raises FILE_DAMAGED if what the
        node gave is not that."""
        content = b""
        while len(content) <= file["size"]:
            part = await self.call("fetch_file", {**about(message), "file": file["digest"], "offset": len(content)})
            if not part.get("data"):
                break
            content += base64.b64decode(part["data"])
        if hashlib.sha256(content).hexdigest() != file["digest"]:
            raise ParleyError("FILE_DAMAGED", f"what the node gave is not the file {file['name']!r}")
        return content

    async def dismiss(self, message: Which) -> None:
        """Drops a message from view."""
        await self.call("dismiss", about(message))

    async def message(self, message: Which) -> Message:
        """Returns one message."""
        got: Message = await self.call("get_message", about(message))
        return got

    async def inbox(self, **view: bool) -> List[Message]:
        """Lists the messages of a view by number: all, pending, snoozed, done, unread, sent or overdue. Without one that is what was received
        and not dismissed."""
        messages: List[Message] = []
        first = 0
        while True:
            page = await self._wire.call("list_messages", {**view, "first": first})
            messages.extend(page["messages"])
            first = page.get("next") or 0
            if not first:
                return messages

    def follow(self, cursor: str = "", **view: bool) -> AsyncIterator[Item]:
        """Yields the messages of a view as they are after a cursor, then each that comes or changes.

        It goes on through restarts of the node. To follow from the cursor of an item yields what came after it, each change
        once, in this program or the next.
        """
        return _follow(self._wire, view, cursor)

    # Names.

    async def names(self, path: str = "") -> List[str]:
        """Lists the names that the agent holds, or those within what stands under a path."""
        names: List[str] = []
        after = ""
        while True:
            page = await self._wire.call("list_names", {"path": path, "after": after})
            names.extend(page["names"])
            after = page.get("next") or ""
            if not after:
                return names

    async def lookup(self, name: str, *, reveal: bool = False) -> Any:
        """Returns the value under a name; a reference is a Ref."""
        return (await self.call("lookup", {"name": name, "reveal": reveal})).get("value")

    async def store(self, name: str, value: Any) -> None:
        """Puts a value under a name."""
        await self.call("store_name", {"name": name, "value": value})

    # Agents.

    async def agents(self, **filter: Any) -> List[Agent]:  # noqa: A002
        """Lists the agents that the client's agent sees, the oldest first; labels and statuses select."""
        agents: List[Agent] = []
        after = ""
        while True:
            page = await self._wire.call("fetch_agents", {"filter": filter, "after": after})
            agents.extend(page["agents"])
            after = page.get("next") or ""
            if not after:
                return agents

    async def prompt(self, agent: str, text: str, *, message_id: Optional[str] = None) -> Dict[str, Any]:
        """Sends a message to an agent at work, once, and returns when it is accepted."""
        prompt = {"agentId": agent, "text": text, "messageId": message_id}
        got: Dict[str, Any] = await self.call("send_agent_message", prompt)
        requests.refuse(got)
        return got

    async def wait_for_agent(self, agent: str) -> str:
        """Waits until an agent has nothing more to do, and returns idle, error, or permission, for which it waits."""
        while True:
            got = await self._wire.call("wait_for_finish", {"agentId": agent, "timeoutMs": _TURN_MS})
            status = got["status"]
            if status != "timeout":
                return str(status)

    async def output(self, agent: str, after: int = 0, *, follow: bool = False) -> AsyncIterator[OutputPiece]:
        """Yields what an agent's program has put out after a cursor, the oldest first, and with follow what comes."""
        while True:
            wait = {"waitMs": _TURN_MS} if follow else {}
            page = await self._wire.call("read_output", {"agentId": agent, "after": after, **wait})
            for piece in page["pieces"]:
                yield piece
            if not page["pieces"] and not follow:
                return
            after = page["cursor"]

    def follow_agents(self, **filter: Any) -> AsyncIterator[AgentUpdate]:  # noqa: A002
        """Yields agents as they are, then each that changes, also through restarts of the node. labels, statuses and agentId select.

        It needs a WebSocket to the node.
        """
        return _follow_agents(self._wire, filter)


class AsyncAsked:
    """A form that was asked, and is on the node's disk.

    ``form`` is None if nothing was asked, because the name for the answer is bound already. ``number`` is that of the form in
    the asker's mailbox. ``unreachable`` says that the recipient's node cannot be reached now; the form goes there when it can.
    """

    def __init__(self, wire: AsyncWire, asked: Mapping[str, Any], coming: Optional[Coming] = None) -> None:
        self._wire, self._coming = wire, coming
        self._outcome: Optional[Outcome] = asked.get("outcome")
        self.form: Optional[str] = asked.get("form")
        self.promise: Optional[str] = asked.get("promise")
        self.number: int = asked.get("number", 0)
        self.unreachable: bool = asked.get("unreachable", False)

    async def wait(self) -> Outcome:
        """Waits until the form has ended, at once if it has, also through restarts of the node."""
        if self._outcome is None or self._outcome["status"] == "open":
            self._outcome = await self._arrived() or await _await_end(self._wire, self.form or "")
        return self._outcome

    async def wait_question(self, after: int = 0) -> Outcome:
        """Waits as wait does, and also until one who may answer the form asks back: with the status asked, the words as note, and the
        number of the message, to which a reply goes to who asked. Another wait with that number as after goes on."""
        if self._outcome is not None and self._outcome["status"] != "open":
            return self._outcome
        return await _await_end(self._wire, self.form or "", "asked", after)

    async def _arrived(self) -> Optional[Outcome]:
        """Waits for the outcome on the connection that asked. It returns None if that is lost."""
        try:
            outcome = await self._coming.wait() if self._coming is not None else None
        except Lost:
            self._coming = None
            return None
        return outcome if outcome is not None and outcome["status"] != "open" else None

    async def answer(self) -> Any:
        """Waits for the answer's values. A form that ends otherwise raises DECLINED, CANCELLED or EXPIRED."""
        return requests.answered(await self.wait())


class AsyncPermission(AsyncAsked):
    """An approval that was asked for: a standing rule or the agent's policy has decided it, or it is a form.

    ``unattended`` says, of an approval that was to be attended, that nobody follows the mail of who would decide.
    """

    def __init__(self, wire: AsyncWire, permission: Mapping[str, Any], coming: Optional[Coming] = None) -> None:
        super().__init__(wire, permission, coming)
        self.unattended: bool = permission.get("unattended", False)
        self._decision: Optional[Decision] = None
        if permission.get("decided"):
            self._decision = Decision(permission.get("allowed") is True, "", permission.get("rule"))

    async def decision(self) -> Decision:
        """Waits for the decision. What was declined, cancelled or has expired is not allowed, nor what another than the host has
        decided. Where nothing was asked, as unattended says, it raises NO_PENDING_PERMISSION."""
        if self._decision is not None:
            return self._decision
        if self.unattended and self.form is None:
            raise ParleyError("NO_PENDING_PERMISSION", "nobody follows the mail of who would decide, and nothing was asked")
        return requests.decided(await self.wait())


async def _await_end(wire: AsyncWire, form: Which, until: str = "", after: int = 0, of_all: bool = False) -> Outcome:
    rest = {**({"until": until} if until else {}), **({"after": after} if after else {}), **({"all": True} if of_all else {})}
    while True:
        outcome = await wire.call("await", {**about(form), **rest, "waitMs": _TURN_MS})
        if outcome["status"] != "open":
            return _outcome(outcome)


def _outcome(got: Any) -> Outcome:
    outcome: Outcome = got
    return outcome


async def _follow(wire: AsyncWire, view: Mapping[str, bool], cursor: str) -> AsyncIterator[Item]:
    at = parse(cursor)
    while True:
        if at.is_between:
            async for item in wire.follow(frame.FOLLOW, {**view, "cursor": at.text()}):
                at = parse(item["cursor"])
                yield Item(item["message"], item["cursor"])
        items, at = (await _batch(wire, view, at)).items(at)
        for told in items:
            yield told


async def _batch(wire: AsyncWire, view: Mapping[str, bool], at: Position) -> Batch:
    steps = next_batch(view, at, _TURN_MS)
    response = None
    while True:
        try:
            operation, request = steps.send(response)
        except StopIteration as done:
            batch: Batch = done.value
            return batch
        response = await wire.call(operation, request)


async def _follow_agents(wire: AsyncWire, filter: Mapping[str, Any]) -> AsyncIterator[AgentUpdate]:  # noqa: A002
    known: Dict[str, Agent] = {}
    unopened = 0
    while True:
        first: Optional[Dict[str, bool]] = {}  # those of the first listing, None after it
        async for item in wire.follow(frame.FOLLOW_AGENTS, filter):
            unopened = 0
            if item["kind"] == "told":
                for gone in [id for id in known if id not in (first or {})]:
                    yield AgentUpdate("remove", known.pop(gone))
                first = None
                continue
            agent: Agent = item["agent"]
            if first is not None:
                first[agent["id"]] = True
            if item["kind"] == "remove":
                if known.pop(agent["id"], None) is not None:
                    yield AgentUpdate("remove", agent)
            elif known.get(agent["id"]) != agent:
                known[agent["id"]] = agent
                yield AgentUpdate("upsert", agent)
        unopened += 1
        if unopened == 5:
            raise ParleyError("NODE_UNREACHABLE", "the node answers, but not over a WebSocket")
        await asyncio.sleep(_REST)  # the node stopped: following begins again with a listing
        await wire.look()
