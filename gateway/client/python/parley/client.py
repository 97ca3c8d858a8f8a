"""The client that blocks: that of asyncio, run by a thread in the background."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union

from .aio import AsyncAsked, AsyncClient, AsyncPermission
from .aio_wire import AsyncWire, Connection
from .background import Background
from .requests import Shown, Steps, Texts, When, Which
from .types import Agent, Attention, Claimed, Decision, Field, File, Item, Lease, Message, Outcome, OutputPiece, Team, Topic, TopicPost
from .wire import Presence


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
    connection = Connection(url, token, tls, Presence(url, patience))
    background, client = Background(connection), AsyncClient(AsyncWire(connection, token, as_))
    try:
        background.run(client.open(), timeout)
    except BaseException:
        background.close()
        raise
    return Client(background, client)


class Client:
    """Calls a node's operations for one agent. Several threads may use it.

    Every method takes ``timeout`` in seconds and raises TimeoutError after that; what was asked for may still happen. Without
    it a method waits as long as it takes.
    """

    def __init__(self, background: Background, client: AsyncClient) -> None:
        self._background, self._client = background, client

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], at: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, and ends the calls of other threads. A later call opens it again."""
        self._background.close()

    def call(self, operation: str, request: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None) -> Any:
        """Performs any of the node's operations. What only looks, or has a key, which it is given, is made again after a loss."""
        return self._background.run(self._client.call(operation, request), timeout)

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
        asked = self._client.ask(
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
        return Asked(self._background, self._background.run(asked, timeout))

    def request(
        self, recipient: str, text: str, *, name: str = "", key: Optional[str] = None, timeout: Optional[float] = None
    ) -> Asked:
        """Asks for a reference. The value of its answer is under "value"."""
        asked = self._client.request(recipient, text, name=name, key=key)
        return Asked(self._background, self._background.run(asked, timeout))

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
        asked = self._client.approve(
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
        return Permission(self._background, self._background.run(asked, timeout))

    def wait(self, form: Which, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until a form has ended, at once if it has, also through restarts of the node."""
        return self._background.run(self._client.wait(form), timeout)

    def wait_state(
        self, message: Which, until: str, *, of_all: bool = False, timeout: Optional[float] = None
    ) -> Outcome:
        """Waits until a message that the agent sent is delivered, offered, shown or handled, at once if it has come further, also
        through restarts of the node. The status of the outcome is the state that it is in; "declined" if its recipient refused it.
        With of_all, of a message to a group, it waits for each member that it reached, whoever has replied for the group."""
        return self._background.run(self._client.wait_state(message, until, of_all=of_all), timeout)

    def cancel(self, form: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Takes back a form that the agent asked."""
        return self._background.run(self._client.cancel(form, reason), timeout)

    def amend(self, form: Which, *, timeout: Optional[float] = None, **change: Any) -> Message:
        """Corrects the title, description or fields of an open form that the agent asked; note says why."""
        return self._background.run(self._client.amend(form, **change), timeout)

    # What the agent answers.

    def answer(self, form: Shown, values: Mapping[str, Any], *, timeout: Optional[float] = None) -> Outcome:
        """Answers a form. A wrong answer is INVALID_ANSWER, with what is wrong with each field, and leaves the form open."""
        return self._background.run(self._client.answer(form, values), timeout)

    def answer_text(self, form: Shown, texts: Texts, *, timeout: Optional[float] = None) -> Outcome:
        """Answers a form with texts, which are read by the fields' types, as on a command line."""
        return self._background.run(self._client.answer_text(form, texts), timeout)

    def decide(self, decisions: Sequence[Mapping[str, Any]], *, timeout: Optional[float] = None) -> List[Dict[str, Any]]:
        """Decides on approvals, each by its form, the digest of the call that was shown, and the decision."""
        return self._background.run(self._client.decide(decisions), timeout)

    def decline(self, form: Shown, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Says no to a form."""
        return self._background.run(self._client.decline(form, reason), timeout)

    def claim(self, form: Which, seconds: float = 1800, take_over: bool = False, *, timeout: Optional[float] = None) -> Claimed:
        """Is on a form that others may answer too, for a time: they see it. CLAIMED refuses what another is on, unless it is taken over."""
        return self._background.run(self._client.claim(form, seconds, take_over), timeout)

    def release(self, form: Which, *, timeout: Optional[float] = None) -> Claimed:
        """Is on a form no more."""
        return self._background.run(self._client.release(form), timeout)

    def withdraw(self, form: Which, *, timeout: Optional[float] = None) -> bool:
        """Takes back the agent's vote on a form that needs several answers and is open. It returns whether that waits for the
        form's home, which cannot be reached: the vote may still count until then."""
        return self._background.run(self._client.withdraw(form), timeout)

    def forward(self, form: Which, recipient: str, *, timeout: Optional[float] = None) -> None:
        """Hands a form on: whoever answers first settles it."""
        self._background.run(self._client.forward(form, recipient), timeout)

    def resolve(self, request: Which, name: str, *, timeout: Optional[float] = None) -> Outcome:
        """Gives what was requested: what the agent holds under a name."""
        return self._background.run(self._client.resolve(request, name), timeout)

    def reject(self, request: Which, reason: str = "", *, timeout: Optional[float] = None) -> Outcome:
        """Says no to a request."""
        return self._background.run(self._client.reject(request, reason), timeout)

    # Messages.

    def send(self, recipient: Union[str, Sequence[str]], text: str, *, timeout: Optional[float] = None) -> int:
        """Sends words, with references as @edge:name or @name, and returns the number of the message. Several recipients all get it, or
        nobody does."""
        return self._background.run(self._client.send(recipient, text), timeout)

    def reply(self, message: Which, text: str, *, to_all: bool = False, timeout: Optional[float] = None) -> int:
        """Answers a message with words, and returns the number of the answer. With to_all, the other recipients of the message get it too,
        as far as the agent can reach them."""
        return self._background.run(self._client.reply(message, text, to_all=to_all), timeout)

    def acknowledge(self, message: Which, *, timeout: Optional[float] = None) -> None:
        """Tells the sender of a message that the agent has taken note of it. A reply does so too."""
        self._background.run(self._client.acknowledge(message), timeout)

    def lease(self, *patterns: str, timeout: Optional[float] = None, **how: Any) -> Lease:
        """Asks for a lease on files or names, as src/checkout/** or port:3000. How is the members of the operation lease: folder, ttlMs,
        shared, for, team, waitMs. With waitMs it waits in the queue: await_lease tells when it is held."""
        return self._background.run(self._client.lease(*patterns, **how), timeout)

    def await_lease(self, lease: int, *, timeout: Optional[float] = None) -> Lease:
        """Waits until a lease is held, or has ended, which its state says then."""
        return self._background.run(self._client.await_lease(lease), timeout)

    def release_lease(self, lease: int, *, timeout: Optional[float] = None) -> None:
        """Releases a lease, or waits for it no longer."""
        self._background.run(self._client.release_lease(lease), timeout)

    def leases(self, *, timeout: Optional[float] = None) -> List[Lease]:
        """Lists the agent's leases, and those by which others keep it from writing."""
        return self._background.run(self._client.leases(), timeout)

    def teams(self, *, timeout: Optional[float] = None) -> List[Team]:
        """Lists the teams that the agent is in, and who is there."""
        return self._background.run(self._client.teams(), timeout)

    def set_team(self, team: str, *, add: Sequence[str] = (), remove: Sequence[str] = (), timeout: Optional[float] = None) -> List[Team]:
        """Adds agents to a team of the host's, which it makes if there is none with the name, and removes others."""
        return self._background.run(self._client.set_team(team, add=add, remove=remove), timeout)

    def end_team(self, team: str, *, timeout: Optional[float] = None) -> None:
        """Ends a team of the host's, which all members leave."""
        self._background.run(self._client.end_team(team), timeout)

    def topics(self, *, timeout: Optional[float] = None) -> List[Topic]:
        """Lists the topics that the agent may join."""
        return self._background.run(self._client.topics(), timeout)

    def make_topic(self, topic: str, *, team: str = "", timeout: Optional[float] = None) -> Topic:
        """Makes a topic of the host's: for all its agents, or for the members of a team."""
        return self._background.run(self._client.make_topic(topic, team=team), timeout)

    def end_topic(self, topic: str, *, timeout: Optional[float] = None) -> None:
        """Ends a topic of the host's."""
        self._background.run(self._client.end_topic(topic), timeout)

    def subscribe(self, topic: str, *, every: float = 0, stream: bool = False, timeout: Optional[float] = None) -> Topic:
        """Has the agent get the posts of a topic: as digests, so many seconds at most after a post (default an hour), or as a stream."""
        return self._background.run(self._client.subscribe(topic, every=every, stream=stream), timeout)

    def unsubscribe(self, topic: str, *, timeout: Optional[float] = None) -> Topic:
        """Ends the agent's subscription."""
        return self._background.run(self._client.unsubscribe(topic), timeout)

    def post(self, topic: str, text: str, *, subject: str = "", key: str = "", timeout: Optional[float] = None) -> int:
        """Sends a post to a topic, and returns its number in the agent's own mailbox. With the same key it is posted once."""
        return self._background.run(self._client.post(topic, text, subject=subject, key=key), timeout)

    def posts(self, topic: str, *, before: int = 0, limit: int = 0, timeout: Optional[float] = None) -> List[TopicPost]:
        """Returns the posts of a topic that came last before a number, the oldest first: 100 at most."""
        return self._background.run(self._client.posts(topic, before=before, limit=limit), timeout)

    def attention(self, *, timeout: Optional[float] = None) -> Attention:
        """Returns how mail reaches the sessions of the coding agent."""
        return self._background.run(self._client.attention(), timeout)

    def set_attention(self, *, timeout: Optional[float] = None, **change: Any) -> Attention:
        """Sets how mail reaches the sessions of the coding agent: allSessions, quiet, zone, interruptions. What is left out stays."""
        return self._background.run(self._client.set_attention(**change), timeout)

    def store_file(self, name: str, content: bytes, *, type: str = "", timeout: Optional[float] = None) -> File:  # noqa: A002
        """Stores a file of 32 MiB at most, part by part, and returns what a message or an answer says of it. The name is one without a
        path."""
        return self._background.run(self._client.store_file(name, content, type=type), timeout)

    def fetch_file(self, message: Which, file: File, *, timeout: Optional[float] = None) -> bytes:
        """Returns the content of a file that a message of the agent carries, or the answer to a form. It raises FILE_DAMAGED if what the
        node gave is not that."""
        return self._background.run(self._client.fetch_file(message, file), timeout)

    def dismiss(self, message: Which, *, timeout: Optional[float] = None) -> None:
        """Drops a message from view."""
        self._background.run(self._client.dismiss(message), timeout)

    def message(self, message: Which, *, timeout: Optional[float] = None) -> Message:
        """Returns one message."""
        return self._background.run(self._client.message(message), timeout)

    def inbox(self, *, timeout: Optional[float] = None, **view: bool) -> List[Message]:
        """Lists the messages of a view by number: all, pending, snoozed, done, unread, sent or overdue. Without one that is what was received
        and not dismissed."""
        return self._background.run(self._client.inbox(**view), timeout)

    def follow(self, cursor: str = "", *, timeout: Optional[float] = None, **view: bool) -> Iterator[Item]:
        """Yields the messages of a view as they are after a cursor, then each that comes or changes, until the timeout.

        It goes on through restarts of the node. To follow from the cursor of an item yields what came after it, each change
        once, in this program or the next.
        """
        items = self._background.each(self._client.follow(cursor, **view), timeout)

        def until_timeout() -> Iterator[Item]:
            try:
                yield from items
            except TimeoutError:
                return

        return until_timeout()

    # Names.

    def names(self, path: str = "", *, timeout: Optional[float] = None) -> List[str]:
        """Lists the names that the agent holds, or those within what stands under a path."""
        return self._background.run(self._client.names(path), timeout)

    def lookup(self, name: str, *, reveal: bool = False, timeout: Optional[float] = None) -> Any:
        """Returns the value under a name; a reference is a Ref."""
        return self._background.run(self._client.lookup(name, reveal=reveal), timeout)

    def store(self, name: str, value: Any, *, timeout: Optional[float] = None) -> None:
        """Puts a value under a name."""
        self._background.run(self._client.store(name, value), timeout)

    # Agents.

    def agents(self, *, timeout: Optional[float] = None, **filter: Any) -> List[Agent]:  # noqa: A002
        """Lists the agents that the client's agent sees, the oldest first; labels and statuses select."""
        return self._background.run(self._client.agents(**filter), timeout)

    def prompt(self, agent: str, text: str, *, message_id: Optional[str] = None, timeout: Optional[float] = None) -> Dict[str, Any]:
        """Sends a message to an agent at work, once, and returns when it is accepted."""
        return self._background.run(self._client.prompt(agent, text, message_id=message_id), timeout)

    def wait_for_agent(self, agent: str, *, timeout: Optional[float] = None) -> str:
        """Waits until an agent has nothing more to do, and returns idle, error, or permission, for which it waits."""
        return self._background.run(self._client.wait_for_agent(agent), timeout)

    def output(
        self, agent: str, after: int = 0, *, follow: bool = False, timeout: Optional[float] = None
    ) -> Iterator[OutputPiece]:
        """Yields what an agent's program has put out after a cursor, the oldest first, and with follow what comes."""
        return self._background.each(self._client.output(agent, after, follow=follow), timeout)


class Asked:
    """A form that was asked, and is on the node's disk.

    ``form`` is None if nothing was asked, because the name for the answer is bound already. ``number`` is that of the form in
    the asker's mailbox. ``unreachable`` says that the recipient's node cannot be reached now; the form goes there when it can.
    """

    def __init__(self, background: Background, asked: AsyncAsked) -> None:
        self._background, self._asked = background, asked
        self.form, self.promise, self.number, self.unreachable = asked.form, asked.promise, asked.number, asked.unreachable

    def wait(self, *, timeout: Optional[float] = None) -> Outcome:
        """Waits until the form has ended, at once if it has, also through restarts of the node."""
        return self._background.run(self._asked.wait(), timeout)

    def wait_question(self, after: int = 0, *, timeout: Optional[float] = None) -> Outcome:
        """Waits as wait does, and also until one who may answer the form asks back: with the status asked, the words as note, and the
        number of the message, to which a reply goes to who asked. Another wait with that number as after goes on."""
        return self._background.run(self._asked.wait_question(after), timeout)

    def answer(self, *, timeout: Optional[float] = None) -> Any:
        """Waits for the answer's values. A form that ends otherwise raises DECLINED, CANCELLED or EXPIRED."""
        return self._background.run(self._asked.answer(), timeout)


class Permission(Asked):
    """An approval that was asked for: a standing rule or the agent's policy has decided it, or it is a form.

    ``unattended`` says, of an approval that was to be attended, that nobody follows the mail of who would decide.
    """

    def __init__(self, background: Background, permission: AsyncPermission) -> None:
        super().__init__(background, permission)
        self._permission, self.unattended = permission, permission.unattended

    def decision(self, *, timeout: Optional[float] = None) -> Decision:
        """Waits for the decision. What was declined, cancelled or has expired is not allowed, nor what another than the host has
        decided. Where nothing was asked, as unattended says, it raises NO_PENDING_PERMISSION."""
        return self._background.run(self._permission.decision(), timeout)
