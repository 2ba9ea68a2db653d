#!/usr/bin/env python3
"""Runs ctest and closes with what a reader of a long log wants to know: the slowest tests, the tests that needed a
second run, and ctest's own summary as the last lines.

    scripts/ctest.py [--record FILE] [--layer NAME] [--layers TEXT] [ARGUMENTS OF CTEST...]

The output of ctest is passed on as it comes; the exit code is ctest's. A test that passed only at its second run is a
fault to be found, not a pass. What is recorded in FILE by one run is listed by the next with the same file too, so that
the last of several has them all; NAME tells apart tests of one name. TEXT is the time of what ran before ("build 9 s"),
shown with that of this run. A test that is a program of many may run those that failed once more by itself, and say so in
the file that GATE_SECOND_RUNS names.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

RESULT = re.compile(r"^\s*(?:\d+/\d+ )?\s*Test\s+#\d+: (\S+) \.+\s*(.*?)\s+([0-9.]+) sec\s*$")
SUMMARY = re.compile(r"^\d+% tests passed, ")


SLOWEST = 20


def run(arguments, layer):
    """ctest's exit code, its summary, and [name, seconds, needed a second run] of each test."""
    seconds, failed, passed, summary = {}, set(), set(), []
    ctest = subprocess.Popen(["ctest", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", bufsize=1)
    try:
        for line in ctest.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if found := RESULT.match(line):
                name, outcome, took = found.groups()
                seconds[name] = seconds.get(name, 0.0) + float(took)
                (passed if outcome.startswith("Passed") else failed).add(name)
            if SUMMARY.match(line):
                summary = []
            summary.append(line)
    except KeyboardInterrupt:
        ctest.wait()
        sys.exit(130)
    if not summary or not SUMMARY.match(summary[0]):
        sys.exit(ctest.wait() or 1)  # it ran nothing
    tests = [[f"{layer}/{name}" if layer else name, took, name in failed and name in passed]
             for name, took in seconds.items()]
    return ctest.wait(), summary, tests


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--record")
    parser.add_argument("--layer")
    parser.add_argument("--layers")
    ours, arguments = parser.parse_known_args()
    begin = time.monotonic()
    with tempfile.NamedTemporaryFile("r") as again:
        os.environ["GATE_SECOND_RUNS"] = again.name
        status, summary, tests = run(arguments, ours.layer)
        tests += [[f"{ours.layer}/{name}" if ours.layer else name, None, True] for name in again.read().split()]
    if ours.record:
        if os.path.exists(ours.record):
            with open(ours.record) as file:
                tests = json.load(file) + tests
        with open(ours.record, "w") as file:
            json.dump(tests, file)
    whole = [test for test in tests if test[1] is not None]  # the others are parts of one
    slowest = sorted(whole, key=lambda test: -test[1])[:SLOWEST]
    print(f"\n=== the slowest {len(slowest)} of {len(whole)} tests, in seconds")
    for name, took, _ in slowest:
        print(f"{took:9.1f}  {name}")
    if ours.layers:
        print(f"=== layers: {ours.layers}, tests {time.monotonic() - begin:.0f} s")
    for name, _, again in tests:
        if again:
            print(f"=== NEEDED A SECOND RUN: {name}: a fault to be found; its first run is shown above")
    print()
    sys.stdout.writelines(summary)
    sys.exit(status)


if __name__ == "__main__":
    main()
