#!/usr/bin/env python3
"""CPU time of all processes per sample: torch's DataLoader with two workers against a script job with two CPU workers.

    tests/bench/loader/compare.py [--pairs 5] [--pipeline imagenet|blur]

The same JPEG files, operators and batches, consumed by one rank that adds up each batch. Each side runs with some
samples and with three times as many, in turn; the difference is free of what starting costs. `imagenet` decodes, crops
to 224 x 224, flips and normalises; `blur` blurs ten times before that. Needs what scripts/setup_python.sh installs.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
RUNTIME = SOURCE / "build/release/bin/hetero-runtime"
PYTHON = SOURCE / ".deps/python/bin/python"
PICTURES, SIDE, BATCH, BLURS = 256, 320, 32, 10

THEIRS = """
import sys, torch, torchvision
from torchvision.transforms import v2 as T
torch.set_num_threads(1)
folder, epochs, blurs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
steps = [T.RandomResizedCrop(224), T.RandomHorizontalFlip()] + [T.GaussianBlur(11, (0.1, 2.0)) for _ in range(blurs)]
steps += [T.PILToTensor(), T.ToDtype(torch.float32, scale=True), T.Normalize([0.5] * 3, [0.25] * 3)]
if blurs:  # faster on tensors than on PIL's pictures
    steps = [T.PILToTensor()] + [step for step in steps if not isinstance(step, T.PILToTensor)]
pictures = torchvision.datasets.ImageFolder(folder, T.Compose(steps))
loader = torch.utils.data.DataLoader(pictures, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True)
total = 0.0
for epoch in range(epochs):
    for images, labels in loader:
        total += images.sum().item()
"""

OURS = """
import torch, hetero
torch.set_num_threads(1)
total = 0.0
for epoch in (stream := hetero.Stream()).epochs():
    for images, labels in epoch:
        total += images.sum().item()
"""


def cpu_seconds(command, **options):
    """Of the process and all that it has waited for."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, **options)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(said.read().decode(errors="replace"))
    return usage.ru_utime + usage.ru_stime


def manifest(folder, script, epochs, blurs):
    blur = {"op": "GaussianBlur", "kernelSize": 11, "sigma": {"min": 0.1, "max": 2.0}, "repeat": blurs}
    return {
        "apiVersion": "training.hetero.dev/v1alpha1",
        "kind": "HeteroTrainingJob",
        "metadata": {"name": "loader"},
        "spec": {
            "dataset": {"uri": f"file://{folder}", "format": "ImageFolder", "classes": 10},
            "pipeline": [
                {"op": "Decode"},
                {"op": "RandomResizedCrop", "size": {"height": 224, "width": 224}},
                {"op": "HorizontalFlip"},
                *([blur] if blurs else []),
                {"op": "Normalize", "mean": [0.5] * 3, "std": [0.25] * 3},
            ],
            "training": {
                "script": {"command": [str(PYTHON), str(script)]},
                "batchSizePerWorker": BATCH,
                "epochs": epochs,
            },
            "roles": [
                {"name": "head", "type": "Head"},
                {"name": "cpu", "type": "CPUWorker", "replicas": 2},
                {"name": "gpu", "type": "GPUWorker", "replicas": 1, "gpusPerReplica": 0},
            ],
        },
    }


def make_pictures(folder, count, side):
    """The folder of so many JPEG files in ten classes below `folder`."""
    subprocess.run(
        [RUNTIME, "make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples", str(count)]
        + ["--validation-samples", "10", "--size", str(side), "--seed", "7", folder / "pictures"],
        check=True,
        capture_output=True,
    )
    return folder / "pictures/train"


def compare_pairs(pairs, ours, theirs, name):
    """Measures both sides in turn, prints each pair, and gives what to print of all: medians and the ratio's range."""
    figures = []
    for number in range(pairs):
        sides = [ours, theirs] if number % 2 == 0 else [theirs, ours]
        pair = {side: side() for side in sides}
        figures.append((pair[ours], pair[theirs]))
        print(f"pair {number + 1}: ours {pair[ours]:.3f} ms, {name} {pair[theirs]:.3f} ms", flush=True)
    ratios = sorted(own / other for own, other in figures)
    return (
        f"ours {statistics.median(own for own, _ in figures):.3f} ms, "
        f"{name} {statistics.median(other for _, other in figures):.3f} ms, ratio {statistics.median(ratios):.3f} "
        f"({ratios[0]:.3f} to {ratios[-1]:.3f})"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--pipeline", choices=["imagenet", "blur"], default="imagenet")
    options = parser.parse_args()
    blurs = BLURS if options.pipeline == "blur" else 0
    short = 1 if blurs else 4
    environment = dict(os.environ, PYTHONPATH=str(SOURCE / "python"), OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        pictures = make_pictures(folder, PICTURES, SIDE)
        (folder / "ours.py").write_text(OURS)

        def theirs(epochs):
            command = [PYTHON, "-c", THEIRS, str(pictures), str(epochs), str(blurs)]
            return cpu_seconds(command, env=environment)

        def ours(epochs):
            (folder / "job.yaml").write_text(json.dumps(manifest(pictures, folder / "ours.py", epochs, blurs)))
            command = [RUNTIME, "local", folder / "job.yaml", "--output", folder / "out"]
            return cpu_seconds(command, env=environment)

        def per_sample(side):
            return (side(3 * short) - side(short)) / (2 * short * PICTURES) * 1000

        text = compare_pairs(options.pairs, lambda: per_sample(ours), lambda: per_sample(theirs), "DataLoader")
    print(f"{options.pipeline}: CPU per sample: {text}")


if __name__ == "__main__":
    main()
