"""What can go wrong between a script and its stream."""

from __future__ import annotations

from typing import Dict, Type


class HeteroError(Exception):
    """Everything that this package raises by itself."""


class MisuseError(HeteroError, RuntimeError):
    """The script asked for what cannot be; the message says what to do instead."""


class ProtocolError(HeteroError, RuntimeError):
    """The agent and this package do not understand each other, as when their versions differ."""


class StreamFailed(HeteroError, RuntimeError):
    """The stream has ended early: the job failed, or the agent is gone."""


class StreamTimeout(HeteroError, TimeoutError):
    """Something did not happen in time; the message says what."""


class ProgramError(HeteroError, RuntimeError):
    """hetero-runtime is missing, or has ended with an error."""


class Stopped(SystemExit):
    """The job stops here: the last state has been asked for, and no batch will follow.

    Raised by the loop over batches after a stop of the job, or when this pod leaves it. As a SystemExit it ends the
    script without a traceback, and `finally` and `with` do their work; the agent knows that this is no failure.
    """

    CODE = 143  # as a process that was ended by SIGTERM

    def __init__(self, message: str = "") -> None:
        super().__init__(self.CODE)
        self.message = message

    def __str__(self) -> str:
        return self.message


_KINDS: Dict[str, Type[HeteroError]] = {
    "misuse": MisuseError,
    "protocol": ProtocolError,
    "failed": StreamFailed,
    "timeout": StreamTimeout,
}


def error_of(kind: str, message: str) -> BaseException:
    """The exception for an agent's `{"type": "error"}`; a kind of a later version is a StreamFailed."""
    if kind == "stopped":
        return Stopped(message)
    return _KINDS.get(kind, StreamFailed)(message)
