"""Batches that are held, dropped in any order, from threads, after a fork, past the end and past the agent's death: the
right bytes or an error by name, never a crash, never other bytes under a tensor that lives."""

import json
import os
import signal
import subprocess
import sys

import pytest

from proof.job import PACKAGE, RUNTIME, SOURCE, manifest, python, wait_for


def results(run, ranks=2):
    return [json.loads((run.records / f"result-{rank}").read_text()) for rank in range(ranks)]


def added(digests):
    return f"{sum(int(digest, 16) for digest in digests) % (1 << 128):032x}"


SMALL, SHARED = 12, 80  # sides of pictures; the larger stay in memory that the script and a CPU worker have in common


def cropped_to(side):
    return [{"op": "RandomResizedCrop", "size": {"height": side, "width": side}}, {"op": "Normalize"}]


def holds(start, framework, side, steps, seconds, *options):
    """Many batches; their digest by the scripts, from the bytes that they saw, is the job's."""
    run = start(
        manifest(
            python("hold.py", "--framework", framework, "--digest", *options),
            pipeline=cropped_to(side),
            dataset__samples=2048,
            training__batchSizePerWorker=1,
            training__epochs=None,
            training__maxSteps=steps,
        )
    )
    report = run.succeed(seconds)
    found = results(run)
    assert [(result["batches"], result["faults"]) for result in found] == [(steps, [])] * 2
    assert report["steps"] == steps
    assert added(result["digest"] for result in found) == report["streamDigest"]


@pytest.mark.parametrize(("framework", "side"), [("numpy", SMALL), ("torch", SMALL), ("torch", SHARED)])
def test_held_and_dropped(start, framework, side):
    holds(start, framework, side, 2000, 120, "--forks", "20")


@pytest.mark.full
@pytest.mark.parametrize(("framework", "side"), [("numpy", SMALL), ("torch", SMALL), ("numpy", SHARED)])
def test_a_hundred_thousand_batches(start, framework, side):
    holds(start, framework, side, 50_000, 1200, "--forks", "100")  # by each of two ranks


@pytest.mark.parametrize("side", [SMALL, SHARED])
def test_past_the_death_of_the_agent(tmp_path, side):
    """Tensors outlive the agent; what asks for more is told that it is gone."""
    path = tmp_path / "script.py"
    path.write_text(
        """
import json, os, pathlib, signal, zlib
import hetero
import numpy as np

signal.signal(signal.SIGTERM, signal.SIG_IGN)
stream = hetero.Stream(raw=True)
records = pathlib.Path(os.environ["PROOF_RECORDS"])
loop = iter(stream)
batches = [next(loop) for _ in range(3)]
before = [zlib.crc32(np.ascontiguousarray(batch["image"])) for batch in batches]
(records / f"ready-{stream.rank}").touch()
said = ""
try:
    for batch in loop:
        pass
    while True:
        stream.state_dict()
except hetero.HeteroError as error:
    said = f"{type(error).__name__}: {error}"
for batch in batches:
    batch["image"][:] += 1  # still the script's own
after = [zlib.crc32(np.ascontiguousarray(batch["image"] - np.uint8(1))) for batch in batches]
(records / "temporary").write_text(json.dumps({"said": said, "same": before == after}))
(records / "temporary").rename(records / f"result-{stream.rank}")
"""
    )
    # Attached, a script is nobody's child that would end it: it sees the end of its agent as it is.
    made = manifest(
        [sys.executable, str(path)],
        pipeline=cropped_to(side),
        training__epochs=None,
        training__maxSteps=10_000_000,
    )
    made["spec"]["dataset"]["samples"] = 1_000_000
    folder = tmp_path / "attached"
    folder.mkdir()
    (folder / "job.yaml").write_text(json.dumps(made))
    environment = dict(os.environ, PROOF_RECORDS=str(folder), PYTHONPATH=f"{PACKAGE}:{SOURCE / 'tests/python'}")
    launcher = subprocess.Popen(
        [RUNTIME, "local", folder / "job.yaml", "--attach", "--output", folder / "out"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    try:
        environment["HETERO_STREAM_SOCKET"] = json.loads(launcher.stdout.readline())["socket"]
        script = subprocess.Popen([sys.executable, path], env=environment)
        wait_for(lambda: (folder / "ready-0").exists(), "three batches", while_running=script)
        agent = next(
            member["pid"]
            for member in json.loads((folder / "out/processes.json").read_text())
            if member["name"].startswith("gpu")
        )
        os.kill(agent, signal.SIGKILL)
        assert script.wait(60) == 0
        result = json.loads((folder / "result-0").read_text())
        assert result["same"]
        assert result["said"].startswith("StreamFailed"), result
    finally:
        launcher.stdin.close()
        assert isinstance(launcher.wait(60), int)
