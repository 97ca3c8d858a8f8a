"""A client of a running Parley node: it asks and waits, answers, and follows mail.

Promised: an ask, a request, an approval or a prompt arrives once, also through lost connections and restarts of the node.
A wait goes on through these. ``follow`` misses nothing and shows nothing twice, also from the cursor of an earlier program.
Not promised: that any other change is made when its connection breaks before the node has answered. The error says so.

``connect`` gives a client that blocks; ``parley.aio.connect`` one for asyncio. Each has one connection for all that it does.
"""

from .client import Asked, Client, Permission, connect
from .errors import ParleyError
from .types import Agent, AgentUpdate, Decision, Field, Item, Message, Option, Outcome, OutputPiece, Ref

__all__ = [
    "Agent",
    "AgentUpdate",
    "Asked",
    "Client",
    "Decision",
    "Field",
    "Item",
    "Message",
    "Option",
    "Outcome",
    "OutputPiece",
    "ParleyError",
    "Permission",
    "Ref",
    "connect",
]
