"""What a node refuses, and calls without an answer."""

from __future__ import annotations

import json
from typing import Dict, Mapping, Optional, Union


class ParleyError(Exception):
    """A refusal or a failure.

    ``code`` is for programs and never changes its meaning. ``message`` is for people; ``hint``, if any, says what to do.
    ``fields`` has, for INVALID_ANSWER and INVALID_FORM, what is wrong with each field.
    """

    def __init__(self, code: str, message: str, hint: Optional[str] = None, fields: Optional[Mapping[str, str]] = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.hint = hint
        self.fields: Dict[str, str] = dict(fields or {})


class Lost(Exception):
    """A call that brought no answer. Whether the node has heard it is not known, unless it was never sent."""

    def __init__(self, sent: bool, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.sent = sent
        self.cause = cause


def refusal_in(status: int, text: bytes) -> Union[ParleyError, Lost]:
    """Returns the error in a response. One that is none of the node's own is by something on the way to it."""
    try:
        said = json.loads(text)["error"]
        error = ParleyError(str(said["code"]), str(said.get("message", "")), said.get("hint"), said.get("fields"))
    except (ValueError, KeyError, TypeError, AttributeError):
        error = ParleyError("INTERNAL", f"the node answered with HTTP status {status} and no error")
        return Lost(True, error) if status in (502, 503, 504) else error
    return Lost(True, error) if error.code == "NOT_RUNNING" else error  # the node is about to stop
