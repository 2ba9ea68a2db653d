"""The script's end of the socket to its agent: frames, answers, file descriptors.

runtime/agent/stream_protocol.h describes the messages.
"""

from __future__ import annotations

import array
import collections
import json
import os
import select
import socket
import struct
import threading
import time
from typing import Any, Callable, Deque, Dict, Optional

from .errors import MisuseError, ProtocolError, StreamFailed, StreamTimeout, error_of

Message = Dict[str, Any]

DESCRIPTOR = "descriptor"  # of the file that came with a message, in it; whoever takes it out closes it

MOST_TO_AGENT = 1 << 20
MOST_TO_SCRIPT = 16 << 20
_MOST_DESCRIPTORS = 4
_LENGTH = struct.Struct("<I")
_READ_AT_ONCE = 64 << 10
_SOON = 0.02  # seconds
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER = json.JSONDecoder()


class Connection:
    """One connection; usable from any thread.

    Requests wait for their answer one after another. What has no answer (`post`) may be sent at any time, also from a
    finalizer that the garbage collector runs in the middle of another call: it is queued and goes out with the next
    request, or at once while one waits for its answer, which may depend on it.
    """

    def __init__(self, path: str, timeout: float = 60.0) -> None:
        self._path = path
        self._requests = threading.Lock()  # one request at a time, from its sending to its answer
        self._sending = threading.Lock()  # the socket's write side; never held while waiting for an answer
        self._posts: Deque[bytes] = collections.deque()
        self._waiting = False  # a request has no answer yet
        self._buffer = bytearray()
        self._descriptors: Deque[int] = collections.deque()
        self._unanswered: Optional[Message] = None  # a request that was sent
        self._late: Dict[bytes, Message] = {}  # answers of requests that nobody waited for any longer
        self._broken: Optional[str] = None
        self._pid = os.getpid()
        self._socket = _connect(path, timeout)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    @property
    def closed(self) -> bool:
        return self._broken is not None

    def request(
        self,
        message: Message,
        timeout: Optional[float] = None,
        watch: Optional["Watch"] = None,
    ) -> Message:
        """Sends `message` and returns its answer. Raises what the agent answers as an error.

        `timeout`: seconds; None waits for as long as the connection stands. `watch` is asked while there is no answer.
        """
        self.check_process()
        with self._requests:
            if self._unanswered is not None and self._unanswered != message:
                # It was asked ahead, or Ctrl-C came. A batch must not be lost by that; the rest is asked anew.
                earlier, answer = self._unanswered, self._answer(self._unanswered, timeout, watch)
                if earlier["type"] == "next":
                    self._late[_encode(earlier)] = answer
            late = self._late.pop(_encode(message), None) if self._late else None
            if late is not None:
                return self._checked(late)
            if self._unanswered is None:
                self._send(message)
            return self._checked(self._answer(message, timeout, watch))

    def ask_ahead(self, message: Message) -> bool:
        """Sends a request that will be made later, unless it is under way; whether its answer is there by now."""
        self.check_process()
        with self._requests:
            if _encode(message) in self._late:
                return True
            if self._unanswered is None:
                self._send(message)
                self._unanswered = message
            if self._unanswered != message or not self._wait(time.monotonic(), None):
                return False
            self._read()
            answer = self._parse()
            if answer is None:
                return False
            self._unanswered = None
            self._waiting = False
            self._late[_encode(message)] = answer
            return True

    def take_late(self, message: Message) -> Optional[Message]:
        """The answer of a request like it that nobody waited for any longer, if there is one."""
        return self._late.pop(_encode(message), None)

    def post(self, message: Message, now: bool = False) -> None:
        """Sends what has no answer, `now` or when it is needed; without a connection nothing happens."""
        if self._broken is None and os.getpid() == self._pid:
            self._posts.append(_encode(message))
            if now or self._waiting:
                self._send_posts()

    def close(self, reason: str = "the stream was closed") -> None:
        if self._broken is None:
            self._broken = reason
        self._socket.close()
        unused = [answer.pop(DESCRIPTOR) for answer in self._late.values() if DESCRIPTOR in answer]
        while unused or self._descriptors:
            os.close(unused.pop() if unused else self._descriptors.popleft())

    def abandon(self) -> None:
        """In a child process: lets go of the socket without a word; it is the parent's."""
        self._broken = "the stream belongs to the process that opened it"
        self._socket.close()

    def check_process(self) -> None:
        """MisuseError in a child of the process that has connected."""
        if os.getpid() != self._pid:
            raise MisuseError(
                "the stream belongs to the process that opened it, and this is a child of it: read batches in the "
                "parent (DataLoader(stream, batch_size=None, num_workers=0)); the agent and the CPU workers do what "
                "loader workers are for"
            )

    def _answer(self, message: Message, timeout: Optional[float], watch: Optional["Watch"]) -> Message:
        self._unanswered = message
        self._waiting = True
        try:
            self._send_posts()
            answer = self._receive(str(message["type"]), timeout, watch)
        finally:
            self._waiting = self._unanswered is not None
        self._unanswered = None
        self._waiting = False
        return answer

    def _send(self, message: Message) -> None:
        payload = _encode(message)
        self._waiting = True  # from here on nothing is left in the queue
        with self._sending:
            self._send_all(self._take_posts() + payload)

    def _send_posts(self) -> None:
        # Whoever finds the lock held leaves its posts to the holder, who looks again after letting go of it.
        while self._posts and self._sending.acquire(blocking=False):
            try:
                self._send_all(self._take_posts())
            except StreamFailed:
                return  # the next request says so
            finally:
                self._sending.release()

    def _take_posts(self) -> bytes:
        frames = []
        while True:
            try:
                frames.append(self._posts.popleft())
            except IndexError:
                return b"".join(frames)

    def _send_all(self, data: bytes) -> None:
        if self._broken is not None:
            raise StreamFailed(self._broken)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None
        except BaseException:  # a signal's handler: half a message may be out
            self.close("a message to the agent was interrupted")
            raise

    def _receive(self, what: str, timeout: Optional[float], watch: Optional["Watch"]) -> Message:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            message = self._parse()
            if message is not None:
                return message
            if not self._wait(end, watch):
                reason = f"the agent did not answer '{what}' within {timeout:g} s"
                self.close(reason)
                raise StreamTimeout(reason)
            self._read()

    def _wait(self, end: Optional[float], watch: Optional["Watch"]) -> bool:
        """Until there is something to read; False once `end` has passed."""
        # Most answers are there soon, without a look at anything else.
        soon = _SOON if end is None else max(0.0, min(_SOON, end - time.monotonic()))
        if self._poll.poll(soon * 1000):
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        while True:
            pause = None if end is None else max(0.0, end - time.monotonic())
            if watch is not None:
                asked = watch(poll)
                pause = asked if pause is None else min(pause, asked)
            ready = poll.poll(None if pause is None else pause * 1000)
            if self._broken is not None:
                return True  # closed by another thread, which reading tells
            if any(fd == self._socket.fileno() for fd, _ in ready):
                return True
            if end is not None and time.monotonic() >= end:
                return False

    def _read(self) -> None:
        if self._broken is not None:
            raise StreamFailed(self._broken)
        try:
            data, ancillary, _, _ = self._socket.recvmsg(
                _READ_AT_ONCE, socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize), socket.MSG_CMSG_CLOEXEC
            )
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from None
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(content[: len(content) - len(content) % numbers.itemsize])
                self._descriptors.extend(numbers)
        if not data:
            raise self._lost("it closed the connection")
        self._buffer += data

    def _parse(self) -> Optional[Message]:
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MOST_TO_SCRIPT:
            raise self._nonsense(f"a message of {length} bytes, more than {MOST_TO_SCRIPT}")
        if len(self._buffer) < _LENGTH.size + length:
            return None
        payload = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
        del self._buffer[: _LENGTH.size + length]
        try:
            message = _DECODER.decode(payload.decode())
        except ValueError as error:
            raise self._nonsense(f"a message that is no JSON ({error})") from None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            raise self._nonsense("a message without a type")
        if message["type"] == "welcome" or "new_file" in message:
            # Now, not when the answer is used: answers may be used in another order than they came in.
            if not self._descriptors:
                raise self._nonsense(f"'{message['type']}' without the file that goes with it")
            message[DESCRIPTOR] = self._descriptors.popleft()
        return message

    def _checked(self, answer: Message) -> Message:
        if answer["type"] != "error":
            return answer
        raise error_of(str(answer.get("kind", "")), str(answer.get("message", "the agent gave no reason")))

    def _lost(self, why: str) -> StreamFailed:
        reason = f"the agent at {self._path} is gone ({why}): it was ended or is ending this script; its log says why"
        self.close(reason)
        return StreamFailed(reason)

    def _nonsense(self, what: str) -> ProtocolError:
        reason = f"the agent at {self._path} sent {what}; are package and hetero-runtime of one version?"
        self.close(reason)
        return ProtocolError(reason)


# Called while an answer is awaited, with the poll object, to which it may add file descriptors; returns after how many
# seconds it wants to be asked again.
Watch = Callable[["select.poll"], float]


def _encode(message: Message) -> bytes:
    payload = _ENCODER.encode(message).encode()
    if len(payload) > MOST_TO_AGENT:
        raise MisuseError(f"a '{message['type']}' of {len(payload)} bytes is more than the {MOST_TO_AGENT} allowed")
    return _LENGTH.pack(len(payload)) + payload


def _connect(path: str, timeout: float) -> socket.socket:
    """The agent listens before it starts a script, but a script that was started by hand may be early."""
    end = time.monotonic() + timeout
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except (ConnectionRefusedError, FileNotFoundError) as error:
            connection.close()
            if time.monotonic() >= end:
                raise StreamFailed(
                    f"no agent listens at {path} ({error.strerror}); is the job still running?"
                ) from None
        except OSError as error:
            connection.close()
            raise StreamFailed(f"cannot connect to the agent at {path}: {error.strerror or error}") from None
        time.sleep(0.05)
