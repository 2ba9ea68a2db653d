"""The script of the tests of script jobs: takes its batches, writes down which samples they were, saves as it is told,
and does what no script should where an argument asks for it.

FOLDER/journal-<rank>: a line for each batch, "<step> <id> <id> ...", written when the step is done.
FOLDER/state.json: what rank 0 has saved; all ranks go on from there.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import process_group
import stream_client

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--pace", type=float, default=0, help="seconds of a step")
parser.add_argument("--crash-at", type=int, action="append", default=[], help="steps, each in one generation")
parser.add_argument("--crash-always-at", type=int, default=0)
parser.add_argument("--rank", type=int, default=1, help="who crashes")
parser.add_argument("--end-at", type=int, default=0, help="leave the loop early")
parser.add_argument("--never-ask", action="store_true")
parser.add_argument("--no-stream", action="store_true")
parser.add_argument("--ignore-sigterm", action="store_true")
parser.add_argument("--leave-children", action="store_true")
parser.add_argument("--print-mebibytes", type=int, default=0)
parser.add_argument("--different-states", action="store_true")
parser.add_argument("--take-port", action="store_true", help="once, of the first rank")
parser.add_argument("--wait-at", type=int, default=0, help="once, for ever: the other ranks, in this step")
arguments = parser.parse_args()

rank = int(os.environ["RANK"])
generation = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) + 1
mine = rank == arguments.rank


def once(name):
    """Whether nobody has done it yet, in any generation."""
    try:
        os.close(os.open(arguments.folder / name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


if arguments.ignore_sigterm:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if arguments.leave_children:
    child = subprocess.Popen(
        [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"],
        start_new_session=True,
    )
    (arguments.folder / f"child-{rank}").write_text(f"{child.pid}\n")
if arguments.take_port and rank == 0 and once("taken"):
    taken = socket.create_server((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
if arguments.print_mebibytes and mine:
    for i in range(arguments.print_mebibytes):
        # Lines, and at times a line without end.
        sys.stdout.write("x" * (1 << 20) if i % 4 == 3 else ("x" * 1023 + "\n") * 1024)
    print()
(arguments.folder / f"environment-{rank}.json").write_text(json.dumps(dict(os.environ)))
if arguments.no_stream:
    sys.exit(0)
stream = stream_client.Stream()
if arguments.never_ask:
    stream.ask("bye")
    sys.exit(0)

state_file = arguments.folder / "state.json"
state = json.loads(state_file.read_text()) if state_file.exists() else None
if arguments.different_states and mine:
    state = None
stream.begin(state)
group = process_group.ProcessGroup()


def save():
    state = stream.ask("state")["state"]
    if rank == 0:
        new = arguments.folder / "state.new"
        new.write_text(json.dumps(state))
        new.rename(state_file)
        print("saved at step", state["step"])


def train():
    with open(arguments.folder / f"journal-{rank}", "a") as journal:
        for batch, ids in stream.batches():
            time.sleep(arguments.pace)
            step = batch["step"] + 1  # steps done
            if mine and arguments.crash_always_at == step:
                raise ValueError("boom")
            if mine and step in arguments.crash_at and once(f"crashed-{step}"):
                raise ValueError(f"boom at {step}")
            if not mine and arguments.wait_at == step and once(f"waited-{rank}"):
                time.sleep(1000)
            group.barrier()
            print(step, *ids, file=journal, flush=True)
            stream.tell("report", values={"loss": 1.0 / step}, step=step)
            if stream.ask("checkpoint")["save"]:
                save()
            if arguments.end_at == step:
                return


try:
    train()
except stream_client.Stopped as stopped:
    print("stopped:", stopped)
    sys.exit(143)
stream.ask("bye")
