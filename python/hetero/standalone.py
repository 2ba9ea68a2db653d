"""A job around a script that nobody has started: head and CPU workers on this machine, ended with this process."""

from __future__ import annotations

import atexit
import json
import os
import pathlib
import select
import subprocess
import threading
import time
import weakref
from typing import IO, Any, Mapping, Tuple, Union

from . import program
from .errors import MisuseError, ProgramError, StreamTimeout

_START_TIMEOUT = 120.0
_END_TIMEOUT = 20.0
_LONGEST_LINE = 64 << 10


class Attached:
    """A running `hetero-runtime local JOB --attach`.

    It ends when its standard input does, so also when this process is killed.
    """

    def __init__(
        self,
        job: Union[str, "os.PathLike[str]"],
        overrides: Mapping[str, Any],
        output: Union[str, "os.PathLike[str]", None],
    ) -> None:
        """Returns when the stream can be connected to; ProgramError with what the program said when it ends before."""
        manifest = pathlib.Path(job)
        if not manifest.is_file():
            raise MisuseError(f"there is no manifest {os.fspath(job)!r}")
        self.place = place_of(job, output)
        command = [program.runtime(), "local", str(manifest), "--attach", *program.arguments(overrides)]
        if output is not None:
            command += ["--output", os.fspath(output)]
        # A group of its own: Ctrl-C is for the script, with which it ends.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._lock = threading.Lock()
        self._owner = os.getpid()
        try:
            self.socket = self._read_socket()
        except BaseException:
            self.close()
            raise
        _running.add(self)

    def close(self) -> None:
        """Ends the job and waits for it; a second call does nothing. Does nothing in a child process."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            for signal in (None, self._process.terminate, self._process.kill):
                if signal is not None:
                    signal()
                try:
                    self._process.wait(_END_TIMEOUT)
                    return
                except subprocess.TimeoutExpired:
                    continue

    def _read_socket(self) -> str:
        assert self._process.stdout is not None
        line = _first_line(self._process.stdout, time.monotonic() + _START_TIMEOUT)
        if not line:
            code = self._process.wait(_END_TIMEOUT)
            raise ProgramError(
                f"hetero-runtime local --attach ended with {code} before it had a stream; it said why above"
            )
        try:
            return str(json.loads(line)["socket"])
        except (ValueError, KeyError, TypeError):
            raise ProgramError(f"hetero-runtime local --attach said {line[:200]!r} instead of its socket") from None


def place_of(job: Union[str, "os.PathLike[str]"], output: Union[str, "os.PathLike[str]", None]) -> Tuple[str, str]:
    """Manifest and output: of two jobs that have both in common only one can run."""
    return os.path.realpath(job), "" if output is None else os.path.realpath(output)


def _first_line(pipe: IO[bytes], end: float) -> bytes:
    line = b""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise StreamTimeout(f"hetero-runtime local --attach did not start within {_START_TIMEOUT:g} s")
        part = os.read(pipe.fileno(), 4096)
        if not part:
            return b""
        line += part
    return line


_running: "weakref.WeakSet[Attached]" = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for attached in list(_running):
        attached.close()
