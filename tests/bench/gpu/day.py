#!/usr/bin/env python3
"""Everything that only a machine with a GPU can say, in one go: the tests of the label gpu, training steps beside
PyTorch's, the reference workload with 0, 1 and 2 CPU workers, a script beside a DataLoader. One table of it.

    scripts/gpu_day.sh [--minutes 40] [--output out/gpu-day] [--steps GROUP,...] [--no-setup] [--fresh]
    scripts/gpu_day.sh --rehearse      # on a machine without a GPU, as far as that goes: small models, no figures

Steps run one after the other, each with a deadline; one that fails or hangs is ended and noted with its last lines, and
the next one begins. When the time runs short the steps that are left are shortened, then left out, as the table says.
What passed stays: the next call with the same commit, output and GPU goes on behind it (a machine that is lent for ten
minutes at a time: --minutes 9, again and again; one without a network: --no-setup). --steps takes groups or whole
names, which --list shows. `setup` needs the network; a rehearsal does it only when it is named.

Leaves gpu-day.md, gpu-day.json, and the steps' results and logs in the output folder. Ends with 0 when all chosen steps
have passed (in a rehearsal: none failed), with 1 otherwise, 130 when it was interrupted. Needs a python3 with PyTorch
for CUDA, torchvision, numpy and pytest.
"""

import argparse
import fcntl
import glob
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

from day_budget import allot
from day_records import FAILED, NO_TIME, NOT_RUN, PASSED, Records, commit_of, write_whole
from day_steps import NOT_RUN_CODE, SOURCE, judged, not_run, plan
from day_table import figures_of, same_digests, table

TAIL = 15  # lines
GRACE = 15  # seconds between SIGTERM and SIGKILL


class Interrupted(Exception):
    pass


def say(text):
    print(text, flush=True)


def gpu_of_this_machine():
    """Name and driver of the first GPU; None without one."""
    if not glob.glob("/dev/nvidia[0-9]*") and not os.path.exists("/dev/dxg"):
        return None
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return "a GPU of which nvidia-smi says nothing"
    return said.splitlines()[0].strip()


def kill_marked(mark):
    """Whatever a step has left behind, in its process group or not."""
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if mark in pathlib.Path(path).read_bytes().split(b"\0"):
                os.kill(int(path.split("/")[2]), signal.SIGKILL)
        except OSError:
            continue


def run(command, log, deadline, environment):
    """The exit code, None when it was ended at the deadline. Nothing of it is left when this returns."""
    mark = f"HETERO_GPU_DAY={uuid.uuid4()}"
    variables = {**environment, "HETERO_GPU_DAY": mark.split("=")[1]}
    with open(log, "wb") as said:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd=SOURCE,
            start_new_session=True,
        )
        try:
            return process.wait(deadline)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    pass
            kill_marked(mark.encode())
            process.wait()


def last_lines(log):
    try:
        return log.read_text(errors="replace").splitlines()[-TAIL:]
    except OSError:
        return []


def take(step, allotment, folder, environment):
    """Runs a step; its record."""
    name = step.name.replace("/", "-")
    log, figures = folder / "logs" / f"{name}.log", folder / "figures" / name
    figures.unlink(missing_ok=True)
    record = {"step": step.name, "what": step.what, "deadline": allotment.deadline, "scale": allotment.scale}
    begin = time.monotonic()
    try:
        code = run(step.command(allotment.scale, figures), log, allotment.deadline, environment)
    except OSError as error:
        return {**record, "state": FAILED, "reason": str(error), "seconds": 0}
    record["seconds"] = time.monotonic() - begin
    record["state"] = {0: PASSED, NOT_RUN_CODE: NOT_RUN}.get(code, FAILED)
    if code is None:
        record["reason"] = f"not done within {allotment.deadline:.0f} s"
    elif record["state"] == NOT_RUN:
        record["reason"] = (last_lines(log) or ["it says that it cannot run here"])[-1]
    elif code:
        record["reason"] = f"exit code {code}"
    record = judged(step, record, figures)
    return record if record["state"] == PASSED else {**record, "tail": last_lines(log)}


def chosen(steps, options):
    """The steps of --steps, by group or name."""
    names = options.steps.split(",") if options.steps else None
    if names is None:
        leave_out = options.no_setup or options.rehearse
        return [step for step in steps if not (leave_out and step.name == "setup")]
    known = {step.name for step in steps} | {step.name.split("/")[0] for step in steps}
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"gpu_day: no step {', '.join(unknown)}: use {', '.join(sorted(known))}")
    return [step for step in steps if step.name in names or step.name.split("/")[0] in names]


def write_down(steps, records, wanted, folder, day):
    """The table and the figures as far as they are known now; all records, digests included."""
    found = []
    for step in steps:
        record = records.get(step.name)
        if record is None:
            reason = "not yet" if step in wanted else "not chosen"
            record = {"step": step.name, "what": step.what, "state": NOT_RUN, "reason": reason}
        found.append(record)
    digests = same_digests(found)
    found += [digests] if digests else []
    write_whole(folder / "gpu-day.md", table(found, day))
    write_whole(folder / "gpu-day.json", json.dumps({**day, "steps": found}, indent=1) + "\n")
    return found


def go_through(steps, wanted, options, folder, day):
    """Runs what is wanted and not there yet; all records in the end, and whether it was interrupted."""
    origin = {"commit": day["commit"], "gpu": day["gpu"], "rehearsal": day["rehearsal"]}
    kept = Records(folder, origin)
    if day["commit"] is None:
        say("gpu_day: the commit is not known (no git): NOTHING IS KEPT for a later call; name it with --commit")
    records = {step.name: record for step in steps if (record := kept.of(step.name))}
    again = [
        step
        for step in wanted
        if options.fresh
        or records.get(step.name, {}).get("state") != PASSED
        or not all(path.exists() for path in step.gives)
    ]
    for step in (step for step in wanted if step not in again):
        say(f"kept: {step.name}: {figures_of(records[step.name]) or PASSED}")
    environment = {**os.environ, "HETERO_BIN_DIR": str(options.build / "bin")}
    end = time.monotonic() + 60 * options.minutes
    try:
        for number, step in enumerate(again):
            left = end - time.monotonic()
            allotment = allot(step, again[number + 1 :], left)
            record = {"step": step.name, "what": step.what, "state": NOT_RUN}
            if allotment is None:
                record.update(state=NO_TIME, reason=f"{max(0, left):.0f} s left, it takes {step.least:.0f} at least")
            elif reason := not_run(step):
                record.update(reason=reason)
            else:
                short = f", SHORTENED to {100 * allotment.scale:.0f} %" if allotment.scale < 1 else ""
                say(
                    f"[{number + 1}/{len(again)}, {left / 60:.1f} min left] {step.name}: {step.what}: "
                    f"at most {allotment.deadline:.0f} s{short}"
                )
                record = take(step, allotment, folder, environment)
            records[step.name] = record
            kept.write(record)
            write_down(steps, records, wanted, folder, day)
            words = [record["state"], record.get("reason", ""), figures_of(record)]
            say(f"  {step.name}: {'; '.join(word for word in words if word)}")
            for line in record.get("tail", []):
                say(f"    | {line}")
    except (Interrupted, KeyboardInterrupt):
        return write_down(steps, records, wanted, folder, day), True
    return write_down(steps, records, wanted, folder, day), False


def arguments():
    parser = argparse.ArgumentParser(
        prog="gpu_day.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=40, help="of this call, set-up included (default: 40)")
    parser.add_argument("--output", type=pathlib.Path, help="default: out/gpu-day, of a rehearsal out/gpu-rehearsal")
    parser.add_argument("--steps", help="comma-separated groups or names; default: all")
    parser.add_argument("--list", action="store_true", help="print the steps with their usual seconds, and end")
    parser.add_argument("--no-setup", action="store_true", help="fetch and build nothing")
    parser.add_argument("--fresh", action="store_true", help="run again what has passed, too")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU; the figures mean nothing")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release", help="build folder")
    parser.add_argument("--python", default=None, help="default: python3; in a rehearsal that of the tests")
    parser.add_argument("--gpu-cores", type=int, default=4, help="of the reference workload's trainer (default: 4)")
    parser.add_argument("--commit", help="where git does not say it")
    options = parser.parse_args()
    output = options.output or SOURCE / "out" / ("gpu-rehearsal" if options.rehearse else "gpu-day")
    options.build, options.output = options.build.resolve(), output.resolve()
    own = SOURCE / ".deps/python/bin/python"
    options.python = options.python or (str(own) if options.rehearse and own.exists() else sys.executable)
    return options


def main():
    options = arguments()
    steps = plan(options)
    wanted = chosen(steps, options)
    if options.list:
        for step in wanted:
            say(f"{step.name:24} {step.wants:5.0f} s  {step.what}")
        return 0
    gpu = None if options.rehearse else gpu_of_this_machine()
    if gpu is None and not options.rehearse and any(step.name != "setup" for step in wanted):
        say("gpu_day: this machine has no GPU; --rehearse runs what can be run without one")
        return 2
    for name in ("logs", "figures"):
        (options.output / name).mkdir(parents=True, exist_ok=True)
    with open(options.output / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say(f"gpu_day: another one writes into {options.output}")
            return 2
        return spend(steps, wanted, options, gpu)


def spend(steps, wanted, options, gpu):
    """The exit code of a day."""
    day = {
        "commit": options.commit or commit_of(SOURCE),
        "gpu": gpu,
        "cores": len(os.sched_getaffinity(0)),
        "rehearsal": options.rehearse,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "minutes": options.minutes,
    }

    def interrupted(*_):
        raise Interrupted

    signal.signal(signal.SIGTERM, interrupted)
    records, ended = go_through(steps, wanted, options, options.output, day)
    say((options.output / "gpu-day.md").read_text())
    say(f"in {options.output}: gpu-day.md, gpu-day.json, logs")
    if ended:
        return 130
    names = {step.name for step in wanted} | {"reference digests"}
    fine = {PASSED, NOT_RUN} if options.rehearse else {PASSED}
    return 0 if all(record["state"] in fine for record in records if record["step"] in names) else 1


if __name__ == "__main__":
    sys.exit(main())
