#!/usr/bin/env python3
"""What must hold of a job's result, whatever befell it: the stream, the weights and, told truthfully, its history.

As a program, for tests/chaos/nodes_test.cpp: judge.py weights FILE FILE | judge.py history FOLDER SECONDS [MEMBER...]
"""
import hashlib
import json
import math
import struct
import sys


class Broken(Exception):
    """What a round must not do."""


def read_report(folder):
    with open(f"{folder}/report.json") as file:
        return json.load(file)


def check_result(report, expected):
    """`expected`: fields of the report that an undisturbed run has, too."""
    for field, value in expected.items():
        if report.get(field) != value:
            raise Broken(f"report.json has {field} {report.get(field)!r}, not {value!r}: {report.get('message', '')}")


def weights(file):
    """Name, type, shape and a hash of the bytes of each tensor of a safetensors file; its metadata are passed over."""
    with open(file, "rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        header = json.loads(stream.read(length))
        data = stream.read()
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], tuple(entry["shape"]),
                   hashlib.sha256(data[slice(*entry["data_offsets"])]).hexdigest())
            for name, entry in header.items()}


def check_weights(got, wanted):
    if got.keys() != wanted.keys():
        raise Broken(f"the weights have other names: {sorted(got.keys() ^ wanted.keys())[:5]}")
    differing = sorted(name for name in wanted if got[name] != wanted[name])
    if differing:
        raise Broken(f"{len(differing)} of {len(wanted)} tensors differ from the undisturbed run's: {differing[:5]}")


def times(report, path=""):
    """Every duration in seconds of a report, with its path."""
    if isinstance(report, dict):
        for key, value in report.items():
            if key == "config":  # what was asked for
                continue
            if key.lower().endswith("seconds") and isinstance(value, (int, float)):
                yield f"{path}{key}", value
            yield from times(value, f"{path}{key}.")
    elif isinstance(report, list):
        for index, value in enumerate(report):
            yield from times(value, f"{path}{index}.")


def check_history(report, measured, struck):
    """Strict. `measured`: seconds that the launcher ran, on a clock that nobody sets; `struck`: members that were struck
    while training ran, and replaced after it."""
    for path, seconds in times(report):
        if not math.isfinite(seconds) or seconds < 0:
            raise Broken(f"report.json has {path} {seconds}")
    wall = report["wallSeconds"]
    if not measured - 5 <= wall <= measured + 1:
        raise Broken(f"report.json has wallSeconds {wall}, but the job ran for {measured:.1f} s")
    startup, training = report.get("startupSeconds", 0), report.get("trainSeconds", 0)  # of a job that had steps to do
    if startup > wall + 0.1 or training > wall + 0.1:
        raise Broken(f"a part is longer than the whole: startup {startup} s, training {training} s of {wall} s")
    faults = [fault["what"] for fault in report.get("faults", [])]
    restarts = {worker["name"]: worker["restarts"] for worker in report.get("workers", [])}
    for name in struck:
        if not any(what.startswith(name) for what in faults):
            raise Broken(f"{name} was struck and replaced, and no fault says so: {faults}")
        back = any(what.startswith(name) and "replaced" in what for what in faults)
        if back and restarts.get(name, 0) < 1:
            raise Broken(f"{name} was replaced, and the report counts {restarts.get(name)} restarts of it")


def main():
    what, *arguments = sys.argv[1:]
    try:
        if what == "weights":
            check_weights(weights(arguments[0]), weights(arguments[1]))
        elif what == "history":
            check_history(read_report(arguments[0]), float(arguments[1]), arguments[2:])
        else:
            sys.exit(f"judge: unknown question {what}")
    except Broken as broken:
        sys.exit(str(broken))


if __name__ == "__main__":
    main()
