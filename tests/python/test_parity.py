"""A script gets the stream that the C++ trainer gets, and PyTorch trains on it as it does on its own."""

import copy
import json
import subprocess

import pytest
import safetensors.torch
import torch
import torchvision
from torch import nn

from proof.dump import read_dump
from proof.job import RUNTIME, manifest, python
from proof.record import digest_of

STEPS_PER_EPOCH, RANKS = 5, 2


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of JPEG files, one folder for each of four classes, as torchvision reads them."""
    folder = tmp_path_factory.mktemp("pictures")
    subprocess.run(
        [RUNTIME, "make-dataset", "--format", "ImageFolder", "--classes", "4", "--samples", "70"]
        + ["--validation-samples", "8", "--size", "32", "--seed", "7", folder],
        check=True,
        capture_output=True,
    )
    return folder / "train"


def job(pictures, command, **changes):
    """Five steps an epoch, the last of them of 6 samples instead of 16."""
    made = manifest(
        command,
        dataset={"uri": f"file://{pictures}", "format": "ImageFolder", "classes": 4},
        training__epochs=2,
        **changes,
    )
    crop = {"op": "RandomResizedCrop", "size": {"height": 12, "width": 12}, "scale": {"min": 0.5, "max": 1.0}}
    made["spec"]["pipeline"] = [{"op": "Decode"}, crop, {"op": "HorizontalFlip"}, {"op": "Normalize"}]
    return made


def test_stream_of_resnet18(start, pictures):
    """One manifest, once with the C++ resnet18, once with a script that trains torchvision's."""
    theirs = start(job(pictures, None, training__model={"name": "resnet18"}), "--dump-stream", "dump")
    expected = theirs.succeed()
    assert expected["steps"] == 2 * STEPS_PER_EPOCH
    dumped = read_dump(theirs.folder / "dump", RANKS, STEPS_PER_EPOCH)

    run = start(job(pictures, python("ddp.py", "--model", "resnet18")))
    report = run.succeed()
    received = run.journal()
    for rank in range(RANKS):
        assert [{key: entry[key] for key in entry if key != "restart"} for entry in received[rank]] == dumped[rank]
    assert digest_of(report["seed"], sum(received, [])) == report["streamDigest"] == expected["streamDigest"]
    assert report["samplesConsumed"] == expected["samplesConsumed"] == 140

    # Ids and labels are those of torchvision's own reader of the folder.
    folder = torchvision.datasets.ImageFolder(str(pictures))
    entries = sum(received, [])
    assert all(
        folder.targets[i] == label for entry in entries for i, label in zip(entry["ids"], entry["labels"], strict=True)
    )
    for epoch in range(2):
        assert sorted(i for entry in entries if entry["epoch"] == epoch for i in entry["ids"]) == list(range(70))


def plain_losses(net, dump, dtype, learning_rate):
    """What PyTorch gives without us: the same batches, each rank a copy of the model, gradients averaged by hand."""
    ranks = [copy.deepcopy(net).to(dtype).train() for _ in range(RANKS)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9) for model in ranks]
    losses = [[] for _ in range(RANKS)]
    mean = torch.tensor([0.485, 0.456, 0.406], dtype=torch.float64).view(3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], dtype=torch.float64).view(3, 1, 1)
    for step in range(2 * STEPS_PER_EPOCH):
        shares = [safetensors.torch.load_file(dump / f"rank{rank}-step{step:06d}.safetensors") for rank in range(RANKS)]
        whole = sum(len(share["labels"]) for share in shares)
        for rank, share in enumerate(shares):
            images = ((share["images"].permute(0, 3, 1, 2).double() / 255 - mean) / std).float().to(dtype)
            loss = nn.functional.cross_entropy(ranks[rank](images), share["labels"].long())
            loss = loss * (RANKS * len(share["labels"]) / whole)
            optimizers[rank].zero_grad()
            loss.backward()
            losses[rank].append(loss.item())
        for together in zip(*(model.parameters() for model in ranks), strict=True):
            mean_gradient = sum(parameter.grad for parameter in together) / RANKS
            for parameter in together:
                parameter.grad = mean_gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
        for own, first in zip(ranks[1].buffers(), ranks[0].buffers(), strict=True):
            own.copy_(first)  # as DistributedDataParallel does
    return losses, ranks[0].state_dict()


@pytest.mark.parametrize("model, dtype, tolerance", [("mlp", torch.float32, 1e-5), ("resnet18", torch.float64, 1e-5)])
def test_losses_are_those_of_plain_pytorch(start, pictures, tmp_path, model, dtype, tolerance):
    """Two real ranks of DistributedDataParallel over Gloo, against one process and batches from files."""
    torch.manual_seed(3)
    if model == "resnet18":
        net = torchvision.models.resnet18(num_classes=4)
    else:
        net = nn.Sequential(
            nn.Flatten(), nn.Linear(432, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 4)
        )
    weights = tmp_path / "weights.safetensors"
    safetensors.torch.save_file(net.state_dict(), weights)
    dump = start(job(pictures, None, training__model={"name": "mlp"}), "--input-only", "--dump-stream", "dump")
    dump.succeed()
    options = ["--float64"] if dtype == torch.float64 else []
    run = start(job(pictures, python("ddp.py", "--model", model, "--weights", weights, *options)))
    run.succeed()
    expected, finals = plain_losses(net, dump.folder / "dump", dtype, 0.05)
    for rank in range(RANKS):
        assert [entry["loss"] for entry in run.journal("losses")[rank]] == pytest.approx(expected[rank], rel=tolerance)
    trained = safetensors.torch.load_file(run.records / "model.safetensors")
    for name, value in finals.items():
        assert torch.allclose(trained[name].double(), value.double(), rtol=1e-3, atol=1e-5), name


def test_losses_are_those_of_the_cpp_trainer(start, pictures, tmp_path):
    """The same weights, batches and optimiser, once by hetero-trainer and once by a script."""
    torch.manual_seed(4)
    net = nn.Sequential(nn.Flatten(), nn.Linear(432, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 4))
    weights = tmp_path / "weights.safetensors"
    safetensors.torch.save_file(net.state_dict(), weights)
    optimizer = {"name": "SGD", "learningRate": 0.05, "momentum": 0.9}
    theirs = start(
        job(
            pictures,
            None,
            training__model={"name": "mlp", "weights": f"file://{weights}"},
            training__optimizer=optimizer,
        )
    )
    expected = theirs.succeed()
    run = start(job(pictures, python("ddp.py", "--weights", weights)))
    report = run.succeed()
    assert report["streamDigest"] == expected["streamDigest"]
    ranks = run.journal("losses")
    mean = [sum(rank[step]["loss"] for rank in ranks) / RANKS for step in range(2 * STEPS_PER_EPOCH)]
    assert mean == pytest.approx([point["loss"] for point in expected["lossCurve"]], rel=1e-4), json.dumps(mean)
    ours = safetensors.torch.load_file(run.records / "model.safetensors")
    reference = safetensors.torch.load_file(theirs.output / "model.safetensors")
    assert ours.keys() == reference.keys()
    for name in ours:
        assert torch.allclose(ours[name], reference[name], rtol=1e-4, atol=1e-6), name
