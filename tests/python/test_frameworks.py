"""Loops that are not the user's own: after a stop they go on where they were, in the undisturbed run's stream."""

import signal

import pytest
from test_examples import EXAMPLES, job, pictures  # noqa: F401  (a fixture)

from proof.job import manifest, python, wait_for

pytestmark = pytest.mark.full


@pytest.mark.parametrize(
    "script, option", [("lightning_train.py", "--checkpoint"), ("transformers_train.py", "--checkpoints")]
)
def test_stopped_and_resumed(start, pictures, tmp_path, script, option):  # noqa: F811
    """A stop in the middle of an epoch: the position that the framework saved is the stream's."""
    assert EXAMPLES
    calm = start(job(pictures, tmp_path / "calm", script, option, epochs=6)).succeed(300)
    assert calm["steps"] == 30
    made = job(pictures, tmp_path / "struck", script, option, epochs=6)
    made["spec"]["training"]["checkpoint"]["everySteps"] = 3
    run = start(made)
    # Lightning's checkpoint is a file, that of Transformers a folder.
    saved = tmp_path / "struck"
    wait_for(lambda: saved.is_file() or list(saved.glob("*/stream-1.pt")), "a checkpoint", 120, run.process)
    run.process.send_signal(signal.SIGTERM)
    run.wait(120)
    run.nothing_left()
    assert run.report()["state"] == "Stopped"
    stopped_at = run.report()["steps"]
    assert 3 <= stopped_at < 30
    report = start(made).succeed(300)
    assert report["streamDigest"] == calm["streamDigest"]
    assert report["steps"] == 30


def test_stateful_data_loader(start):
    """torchdata's StatefulDataLoader asks the stream for its state and gives it back."""
    run = start(
        manifest(python("stateful.py"), training__checkpoint={"uri": "file:///tmp/not-written-by-us", "everySteps": 1})
    )
    report = run.succeed()
    calm = start(manifest(None, training__model={"name": "mlp"}), "--input-only").succeed()
    assert report["streamDigest"] == calm["streamDigest"]
    for rank in range(2):
        steps = [entry["step"] for entry in run.journal("trained")[rank]]
        assert steps == list(range(39))
    assert report["scriptRestarts"] == 2
