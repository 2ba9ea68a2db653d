"""The socket: what is no message, who is not there, and Ctrl-C at the wrong moment."""

import signal
import socket
import struct
import threading

import numpy as np
import pytest

import hetero
from hetero.connection import Connection


def answered_by(tmp_path, *pieces):
    """A connection to somebody who answers the first request with these bytes, and then hangs up."""
    path = str(tmp_path / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def answer():
        with listener, listener.accept()[0] as peer:
            peer.recv(1)
            for piece in pieces:
                peer.sendall(piece)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return Connection(path)


def frame(payload):
    return struct.pack("<I", len(payload)) + payload


@pytest.mark.parametrize(
    ("pieces", "kind", "reason"),
    [
        ([struct.pack("<I", (16 << 20) + 1)], hetero.ProtocolError, "16777217 bytes"),
        ([frame(b"{")], hetero.ProtocolError, "no JSON"),
        ([frame(b"\xff\xfe")], hetero.ProtocolError, "no JSON"),
        ([frame(b"[1]")], hetero.ProtocolError, "without a type"),
        ([frame(b'{"type": 1}')], hetero.ProtocolError, "without a type"),
        ([frame(b'{"type": "end"}')[:7]], hetero.StreamFailed, "is gone"),
        ([], hetero.StreamFailed, "gone"),
        ([frame(b'{"type": "error", "kind": "misuse", "message": "no"}')], hetero.MisuseError, "^no$"),
        ([frame(b'{"type": "error", "kind": "later", "message": "no"}')], hetero.StreamFailed, "^no$"),
        ([frame(b'{"type": "error"}')], hetero.StreamFailed, "no reason"),
    ],
)
def test_bad_answers(tmp_path, pieces, kind, reason):
    connection = answered_by(tmp_path, *pieces)
    with pytest.raises(kind, match=reason):
        connection.request({"type": "next"}, timeout=10)
    connection.close()


def test_in_pieces(tmp_path):
    whole = frame(b'{"type": "end"}')
    connection = answered_by(tmp_path, *(whole[i : i + 1] for i in range(len(whole))))
    assert connection.request({"type": "next"}, timeout=10) == {"type": "end"}


def test_stopped_ends_the_script(tmp_path):
    connection = answered_by(tmp_path, frame(b'{"type": "error", "kind": "stopped", "message": "the job stops"}'))
    with pytest.raises(SystemExit) as stop:
        connection.request({"type": "next"}, timeout=10)
    assert isinstance(stop.value, hetero.Stopped) and stop.value.code == 143
    assert str(stop.value) == "the job stops"


def test_nobody_answers(tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        connection = Connection(path)
        with pytest.raises(hetero.StreamTimeout, match=r"'hello' within 0\.2 s"):
            connection.request({"type": "hello"}, timeout=0.2)
    with pytest.raises(hetero.StreamFailed, match="no agent listens"):
        Connection(str(tmp_path / "nowhere"), timeout=0.1)


def test_too_much_for_the_agent(tmp_path):
    connection = answered_by(tmp_path)
    with pytest.raises(hetero.MisuseError, match="1048576"):
        connection.request({"type": "next", "text": "x" * (1 << 20)})


def test_no_batch_is_lost_by_ctrl_c(open_stream, manifest):
    """A loop that was interrupted while it waited goes on with the batch that it waited for."""

    def slow(spec):
        spec["pipeline"].insert(0, {"op": "Delay", "milliseconds": 20})
        spec["training"]["epochs"] = 1

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    stream, seen, interrupted = open_stream(job=manifest(slow)), [], 0
    try:
        loop = iter(stream)
        while True:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            try:
                batch = next(loop)
            except KeyboardInterrupt:
                interrupted += 1
                assert (
                    stream.state_dict()["step"] == stream.step == len(seen) // 8
                )  # what the loop has not seen is not done
                continue
            except StopIteration:
                break
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            seen += np.asarray(batch.ids).tolist()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 0
    assert sorted(seen) == list(range(100))
