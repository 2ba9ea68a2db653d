"""Whatever dies: what the model was trained on, the digest and the weights are those of the undisturbed run."""

import os
import random
import signal

import pytest

from proof.job import LocalJob, manifest, python, wait_for
from proof.record import digest_of

STEPS, RANKS = 39, 2


def job(*arguments, script="ledger.py", every=4, **changes):
    return manifest(
        python(script, *arguments),
        training__checkpoint={"uri": "file:///tmp/not-written-by-us", "everySteps": every},
        runPolicy={"maxRestarts": 20},
        **changes,
    )


def trained(run):
    return run.journal("trained")


def agrees(run, report, undisturbed):
    """The same training, and every state's digest is that of the batches up to it."""
    calm, calm_report = undisturbed
    assert trained(run) == trained(calm)
    assert report["streamDigest"] == calm_report["streamDigest"]
    assert report["steps"] == STEPS
    assert report["samplesConsumed"] == calm_report["samplesConsumed"]
    entries = sum(trained(calm), [])
    assert digest_of(report["seed"], entries) == report["streamDigest"]
    states = run.journal("states")
    assert {state["step"] for state in states[0]} == {state["step"] for state in states[1]}
    for state in sum(states, []):
        before = [entry for entry in entries if entry["step"] < state["step"]]
        assert state["digest"] in (None, digest_of(report["seed"], before)), state


def crashed(run, report):
    """All ten have happened; two of them may have ended one generation."""
    assert len(list(run.records.glob("crashed-*"))) == 10
    starts = run.journal("starts")[0]
    assert [entry["restart"] for entry in starts] == list(range(len(starts)))
    assert 5 <= report["scriptRestarts"] == len(starts) - 1


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    with LocalJob(tmp_path_factory.mktemp("calm"), job()) as run:
        report = run.succeed()
        yield run, report


def test_states_of_an_undisturbed_run(undisturbed):
    run, report = undisturbed
    agrees(run, report, undisturbed)
    steps = [state["step"] for state in run.journal("states")[0]]
    assert steps == [*range(4, STEPS, 4), STEPS]
    assert all(state["digest"] for state in run.journal("states")[0])
    assert run.journal("weights")[0] != run.journal("weights")[1]  # each rank has samples of its own


def test_ten_crashes(start, undisturbed):
    chance = random.Random(int.from_bytes(os.urandom(4), "big"))
    crashes = [f"{step}:{chance.randrange(RANKS)}" for step in chance.sample(range(1, STEPS - 1), 10)]
    print("crashes", crashes)
    run = start(job("--pause", "0.01", "--crash", *crashes))
    report = run.succeed(400)
    agrees(run, report, undisturbed)
    crashed(run, report)
    assert run.journal("weights") == undisturbed[0].journal("weights")
    starts = run.journal("starts")[0]
    assert [entry["restart"] for entry in starts] == list(range(len(starts)))
    assert any("the script's own fault at step" in fault["what"] for fault in report["faults"]), report["faults"]


@pytest.mark.parametrize("victim", ["script", "gpu-1", "cpu-0", "head"])
def test_killed(start, undisturbed, victim):
    run = start(job("--pause", "0.05"))
    run.wait_for_step(10, rank=1)
    os.kill(run.journal("starts")[1][-1]["pid"] if victim == "script" else run.pid(victim), signal.SIGKILL)
    report = run.succeed(400)
    agrees(run, report, undisturbed)
    assert run.journal("weights") == undisturbed[0].journal("weights")
    restarted = len(run.journal("starts")[0]) > 1
    assert restarted == (victim in ("script", "gpu-1")), "CPU workers and the head die without the scripts noticing"
    if victim == "script":
        assert report["scriptRestarts"] == 1


def test_stopped_and_resumed(start, undisturbed):
    """A stop: all ranks save at one step; the next job goes on from there."""
    run = start(job("--pause", "0.05", every=1000))
    run.wait_for_step(10)
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() in (0, 130), run.text()
    run.nothing_left()
    assert run.report()["state"] == "Stopped"
    first, second = run.journal("states")
    assert len(first) == 1 and first == second
    assert 10 < first[0]["step"] < STEPS
    environment = {"PROOF_RECORDS": str(run.records)}
    again = start(job(every=1000), environment=environment)
    report = again.succeed()
    again.records = run.records
    assert [entry["step"] for entry in run.journal("starts")[0]] == [0, first[0]["step"]]
    agrees(again, report, undisturbed)


def test_checkpoints_by_the_clock(start):
    """`everySeconds` is agreed between ranks that do not wait for each other."""
    made = job("--pause", "0.05", every=1000)
    made["spec"]["training"]["checkpoint"] = {"uri": "file:///tmp/not-written-by-us", "everySeconds": 1}
    made["spec"]["training"]["epochs"] = 5
    run = start(made)
    run.succeed()
    first, second = ([state["step"] for state in states] for states in run.journal("states"))
    assert first == second
    assert len(first) >= 3


@pytest.fixture(scope="module")
def undisturbed_ddp(tmp_path_factory):
    with LocalJob(tmp_path_factory.mktemp("calm"), job(script="ddp.py")) as run:
        yield run, run.succeed(300)


def same_model(run, undisturbed):
    model = "model.safetensors"
    assert (run.records / model).read_bytes() == (undisturbed[0].records / model).read_bytes()


@pytest.mark.full
def test_ten_crashes_of_ddp(start, undisturbed_ddp):
    """Real PyTorch: a crash of one rank breaks the other's all-reduce. Weights bit by bit."""
    chance = random.Random(int.from_bytes(os.urandom(4), "big"))
    crashes = [f"{step}:{chance.randrange(RANKS)}" for step in chance.sample(range(1, STEPS - 1), 10)]
    print("crashes", crashes)
    run = start(job("--crash", *crashes, script="ddp.py"))
    report = run.succeed(600)
    agrees(run, report, undisturbed_ddp)
    crashed(run, report)
    same_model(run, undisturbed_ddp)


@pytest.mark.full
@pytest.mark.parametrize("victim", ["script", "gpu-0", "cpu-1", "head"])
def test_killed_with_ddp(start, undisturbed_ddp, victim):
    run = start(job("--pause", "0.05", script="ddp.py"))
    run.wait_for_step(10)
    os.kill(run.journal("starts")[1][-1]["pid"] if victim == "script" else run.pid(victim), signal.SIGKILL)
    report = run.succeed(300)
    agrees(run, report, undisturbed_ddp)
    same_model(run, undisturbed_ddp)


def test_scripts_end_with_their_launcher(start):
    """kill -9 of the launcher: nothing is left, scripts and what they started included."""
    run = start(job("--pause", "0.2"))
    run.wait_for_step(2)
    run.process.kill()
    run.process.wait()
    wait_for(lambda: not run.living(), "the end of every process", 30)
