"""The socket: what is no message, who is not there, and Ctrl-C at the wrong moment."""

import gc
import os
import signal
import socket
import struct
import threading
import time

import numpy as np
import pytest

import hetero
from hetero.connection import DESCRIPTOR, Connection


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


def file_with(content):
    descriptor = os.memfd_create("file")
    os.write(descriptor, content)
    return descriptor


def test_files_go_with_their_answers(tmp_path):
    """An answer that came while another was waited for is used later, with the file that came with it."""
    path = str(tmp_path / "socket")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    answers = [
        (b'{"type": "batch", "new_file": {"number": 1}}', file_with(b"training")),
        (b'{"type": "validation_begun"}', None),
        (b'{"type": "batch", "new_file": {"number": 2}}', file_with(b"validation")),
    ]

    def answer():
        with listener, listener.accept()[0] as peer:
            for text, descriptor in answers:
                peer.recv(4096)
                socket.send_fds(peer, [frame(text)], [] if descriptor is None else [descriptor])

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    connection = Connection(path)
    connection.ask_ahead({"type": "next"})
    connection.request({"type": "validation"}, timeout=10)
    validation = connection.request({"type": "next", "validation": True}, timeout=10)
    training = connection.request({"type": "next"}, timeout=10)
    assert (validation["new_file"]["number"], training["new_file"]["number"]) == (2, 1)
    contents = [os.pread(answer[DESCRIPTOR], 100, 0) for answer in (validation, training)]
    assert contents == [b"validation", b"training"]


def test_closed_while_another_thread_waits(tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        connection, said = Connection(path), []

        def wait():
            try:
                connection.request({"type": "next"}, watch=lambda _: 0.05)
            except hetero.StreamFailed as error:
                said.append(str(error))

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        time.sleep(0.2)  # it waits by now
        connection.close("the agent is gone")
        thread.join(10)
    assert said == ["the agent is gone"]


def test_no_batch_is_lost_while_it_is_made(open_stream):
    """Ctrl-C, or too little memory, while arrays are made of an answer."""
    stream = open_stream()
    loop, arrays, seen = iter(stream), stream._batches.views.arrays, []
    for error in (KeyboardInterrupt, MemoryError):

        def interrupted(owners, fields, error=error):
            arrays(owners, fields)
            raise error

        stream._batches.views.arrays = interrupted
        with pytest.raises(error):
            next(loop)
        stream._batches.views.arrays = arrays
        assert stream.step == len(seen)
        seen.append(next(loop))
        assert stream.step == len(seen) == seen[-1].step + 1
    ids = np.concatenate([np.asarray(batch.ids) for batch in [*seen, *loop]])
    assert sorted(ids.tolist()) == list(range(100))
    gc.collect()
    assert stream._batches.arena.held() == []  # seen are converted copies


def test_a_handler_that_uses_the_stream_is_told(open_stream, manifest):
    def slow(spec):
        spec["pipeline"].insert(0, {"op": "Delay", "milliseconds": 100})

    stream, said = open_stream(job=manifest(slow)), []

    def save(*_):
        try:
            stream.state_dict()
        except hetero.MisuseError as error:
            said.append(str(error))

    before = signal.signal(signal.SIGALRM, save)
    try:
        loop = iter(stream)
        for _ in range(8):  # until one was waited for for so long
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            next(loop)
            if said:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(said) == 1 and "handler" in said[0]
    assert stream.state_dict()["step"] == stream.step


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
