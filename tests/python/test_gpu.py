"""Batches on a GPU: the bytes of the stream, whatever the GPU is still at when the next come; losses as on the CPU."""

import json

import pytest
import torch

from proof.job import manifest, python
from proof.record import digest_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="this PyTorch sees no GPU")


def run(start, device, *options, side):
    job = manifest(
        python("on_gpu.py", device, *options),
        pipeline=[
            {"op": "RandomResizedCrop", "size": {"height": side, "width": side}, "scale": {"min": 0.5, "max": 1.0}},
            {"op": "HorizontalFlip"},
            {"op": "Normalize", "mean": [0.5] * 3, "std": [0.5] * 3},
        ],
        dataset__samples=800,
        training__epochs=2,
        roles__gpu__replicas=1,
        roles__gpu__gpusPerReplica=int(device != "cpu"),
    )
    started = start(job, environment={"PROOF_SIDE": str(side)})
    report = started.succeed()
    return report, json.loads((started.records / "result-0").read_text())


# The larger lie in memory shared with a CPU worker where there is no GPU.
@pytest.mark.parametrize(("side", "options"), [(12, ["--raw"]), (12, []), (80, ["--raw"])])
def test_on_a_gpu_as_on_the_cpu(start, side, options):
    """Each batch and the job's digest; converted values to the last bit, losses but for rounding."""
    report, found = run(start, "cuda:0", *options, side=side)
    expected_report, expected = run(start, "cpu", *options, side=side)
    assert report["streamDigest"] == expected_report["streamDigest"]
    entries = list(zip(found["entries"], expected["entries"], strict=True))
    assert len(entries) == 200
    others = {
        key: [at for at, (ours, theirs) in enumerate(entries) if ours[key] != theirs[key]] for key in entries[0][0]
    }
    assert others == {key: [] for key in others}, "steps at which they differ"
    assert found["crcs"] == expected["crcs"]
    assert digest_of(report["seed"], found["entries"]) == report["streamDigest"]
    for step, (ours, theirs) in enumerate(zip(found["losses"], expected["losses"], strict=True)):
        assert ours == pytest.approx(theirs, rel=0.02, abs=0.002), f"step {step}"
