#!/usr/bin/env python3
"""CPU time of all processes per picture: one Python function, ten Gaussian blurs of torchvision with kernel 11, called
by Ray Data and by our Python operator, each in two processes: Ray has two CPUs, we have one CPU worker on two cores.

    tests/bench/loader/ray_data.py [--pairs 3]

The same JPEG files of 224 x 224, read by one process that adds up each batch of 32. Each side runs for one epoch and
for nine, in turn; the difference is free of what starting costs, which takes Ray alone seconds that are never the same.
Needs what scripts/setup_python.sh installs; installs Ray (ray_data.txt) beside it.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import compare

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import peers_environment

RAY = peers_environment.SOURCE / ".deps/ray"
REQUIREMENTS = pathlib.Path(__file__).with_name("ray_data.txt")
PICTURES, SIDE, EPOCHS = 192, 224, 9

FUNCTION = """
import numpy as np
import torch
from torchvision.transforms import v2

torch.set_num_threads(1)
blurs = v2.Compose([v2.GaussianBlur(11, (0.1, 2.0))] * 10)

def blurred(image):
    return blurs(torch.from_numpy(image).permute(2, 0, 1)).permute(1, 2, 0).contiguous().numpy()
"""

OURS = """
from blurs import blurred

def transform(sample, rng):
    return {"image": blurred(sample["image"])}
"""

THEIRS = """
import sys
import ray
from blurs import blurred

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
ray.data.DataContext.get_current().enable_progress_bars = False
pictures = ray.data.read_images(sys.argv[1], mode="RGB")
pictures = pictures.map(lambda row: {"image": blurred(row["image"])})
count, total = 0, 0
for epoch in range(int(sys.argv[2])):
    for batch in pictures.iter_batches(batch_size=32):
        count, total = count + len(batch["image"]), total + int(batch["image"].sum())
assert count == int(sys.argv[2]) * int(sys.argv[3]), count
ray.shutdown()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=3)
    pairs = parser.parse_args().pairs
    python = peers_environment.install(RAY, REQUIREMENTS)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        pictures = compare.make_pictures(folder, PICTURES, SIDE)
        for name, text in {"blurs": FUNCTION, "augment": OURS, "script": compare.OURS}.items():
            (folder / f"{name}.py").write_text(text)
        environment = {
            **os.environ,
            "PYTHONPATH": f"{folder}:{peers_environment.SOURCE / 'python'}",
            "PATH": f"{peers_environment.PYTHON.parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": f"{folder}/ray",
        }

        def theirs(epochs: int) -> float:
            command = [python, "-c", THEIRS, pictures, str(epochs), str(PICTURES)]
            return peers_environment.cpu_seconds(command, env=environment)

        def ours(epochs: int) -> float:
            job = compare.manifest(pictures, folder / "script.py", epochs, 0)
            outputs = {"image": {"shape": [SIDE, SIDE, 3], "type": "Uint8"}}
            function = {"op": "Python", "module": "augment", "function": "transform", "outputs": outputs}
            for role in job["spec"]["roles"]:
                if role["type"] == "CPUWorker":
                    role.update(replicas=1)
            job["spec"].update(pipeline=[{"op": "Decode"}, function], verify="Disabled")
            (folder / "job.yaml").write_text(json.dumps(job))
            command = [compare.RUNTIME, "local", folder / "job.yaml", "--output", folder / "out"]
            return peers_environment.cpu_seconds(command, env=environment)

        def per_picture(side) -> float:
            return (side(EPOCHS) - side(1)) / ((EPOCHS - 1) * PICTURES) * 1000

        text = compare.compare_pairs(pairs, lambda: per_picture(ours), lambda: per_picture(theirs), "Ray Data")
    print(f"CPU of all processes per picture: {text}")


if __name__ == "__main__":
    main()
