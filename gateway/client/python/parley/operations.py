"""What repeating a call does."""

from __future__ import annotations

from typing import Any, Mapping

# The operations that change nothing: those with the scope read.
LOOKS = frozenset(
    {
        "await",
        "complete",
        "count_messages",
        "fetch_agent",
        "fetch_agents",
        "follow_messages",
        "get_message",
        "get_quota",
        "list_archive",
        "list_grants",
        "list_invitations",
        "list_messages",
        "list_names",
        "list_nodes",
        "list_rules",
        "list_tokens",
        "locate",
        "lookup",
        "read_log",
        "read_output",
        "status",
        "verify",
        "wait_for_finish",
    }
)

KEYED = frozenset({"form", "request", "approve", "decide_many"})


def repeats(operation: str, request: Mapping[str, Any]) -> bool:
    """Reports whether to make a call twice is to make it once."""
    if operation in KEYED:
        return bool(request.get("key"))
    if operation == "send_agent_message":
        return bool(request.get("messageId"))
    return operation in LOOKS
