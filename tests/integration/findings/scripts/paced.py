"""The script of the tests of findings: takes its batches and spends as long on each as it is told, asleep, in Python
code, or in Python code while a thread beside it wants the interpreter, too."""

import argparse
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "local/scripts"))
import stream_client  # noqa: E402 (it lies beside the script of other tests)

parser = argparse.ArgumentParser()
parser.add_argument("--sleep", type=float, default=0, help="seconds of a step in which nothing is done")
parser.add_argument("--compute", type=float, default=0, help="CPU seconds of a step, of the thread that asks for batches")
parser.add_argument("--rivals", type=int, default=0, help="threads that compute all the time")
parser.add_argument("--start", type=float, default=0, help="seconds before the stream is opened")
arguments = parser.parse_args()


def compute(seconds):
    """Python code alone, so that the interpreter's lock is held."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(500))


def compute_for_ever():
    while True:
        compute(1)


time.sleep(arguments.start)
for _ in range(arguments.rivals):
    threading.Thread(target=compute_for_ever, daemon=True).start()
stream = stream_client.Stream()
stream.begin()
for batch, _ in stream.batches():
    time.sleep(arguments.sleep)
    compute(arguments.compute)
    stream.tell("report", values={"loss": 1.0 / (batch["step"] + 1)}, step=batch["step"] + 1)
stream.ask("bye")
