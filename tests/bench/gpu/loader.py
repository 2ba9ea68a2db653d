#!/usr/bin/env python3
"""A script that trains torchvision's ViT-B/16 on this machine's first GPU: hetero.Stream beside torch's DataLoader.

    tests/bench/gpu/loader.py [--steps 60] [--pipeline imagenet|blur] [--workers N] [--json FILE]

The same JPEG files, operators, batch (64) and loop, bfloat16 by autocast; as many loader processes as cores, or one CPU
worker. Prints samples per second after the first fifth of the steps. Needs a GPU, torch and torchvision.

--small runs every line of it but the GPU's on the CPU: resnet18, four pictures of 32 x 32 a batch. Its figures mean
nothing.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
RUNTIME = pathlib.Path(os.environ.get("HETERO_BIN_DIR", SOURCE / "build/release/bin")) / "hetero-runtime"
BLURS = 10
# Read by the scripts, too: each is a variable of the environment with BENCH_ before its name.
LARGE = {"MODEL": "vit_b_16", "DEVICE": "cuda:0", "BATCH": 64, "CROP": 224, "SIDE": 320, "PICTURES": 2048}
SMALL = {"MODEL": "resnet18", "DEVICE": "cpu", "BATCH": 4, "CROP": 32, "SIDE": 40, "PICTURES": 64}

LOOP = """
import json, os, sys, time, torch, torchvision
steps, batch, crop = (int(os.environ["BENCH_" + name]) for name in ("STEPS", "BATCH", "CROP"))
device = os.environ["BENCH_DEVICE"]
on_gpu = device != "cpu"
def finish():
    if on_gpu:
        torch.cuda.synchronize()
model = getattr(torchvision.models, os.environ["BENCH_MODEL"])(num_classes=10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
def train(batches):
    done = began = 0
    for images, labels in batches:
        with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu):  # a CPU without bfloat16 is slow at it
            loss = torch.nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done == steps // 5:
            finish()
            began = time.monotonic()
        if done == steps:
            break
    finish()
    with open(os.environ["BENCH_RESULT"], "w") as result:
        json.dump({"rate": (done - steps // 5) * batch / (time.monotonic() - began), "steps": done}, result)
"""

THEIRS = (
    LOOP
    + """
from torchvision.transforms import v2 as T
if __name__ == "__main__":
    folder, blurs, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    parts = [T.PILToTensor()] if blurs else []  # blurs are faster on tensors than on PIL's pictures
    parts += [T.RandomResizedCrop(crop), T.RandomHorizontalFlip()]
    parts += [T.GaussianBlur(11, (0.1, 2.0)) for _ in range(blurs)]
    parts += [] if blurs else [T.PILToTensor()]
    parts += [T.ToDtype(torch.float32, scale=True), T.Normalize([0.5] * 3, [0.25] * 3)]
    pictures = torchvision.datasets.ImageFolder(folder, T.Compose(parts))
    loader = torch.utils.data.DataLoader(pictures, batch_size=batch, shuffle=True, num_workers=workers,
                                         pin_memory=on_gpu, persistent_workers=True,
                                         worker_init_fn=lambda _: torch.set_num_threads(1))
    def batches():
        while True:
            for images, labels in loader:
                yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
    train(batches())
    os._exit(0)
"""
)

OURS = (
    LOOP
    + """
import hetero
stream = hetero.Stream(device=device if on_gpu else None)
train(batch for epoch in stream.epochs() for batch in epoch)
"""
)

CEILING = (
    LOOP
    + """
images = torch.randn(batch, 3, crop, crop, device=device)
labels = torch.randint(0, 10, (batch,), device=device)
train((images, labels) for _ in range(steps))
"""
)


def manifest(folder, script, blurs, steps, sizes):
    blur = {"op": "GaussianBlur", "kernelSize": 11, "sigma": {"min": 0.1, "max": 2.0}, "repeat": blurs}
    return {
        "apiVersion": "training.hetero.dev/v1alpha1",
        "kind": "HeteroTrainingJob",
        "metadata": {"name": "loader"},
        "spec": {
            "dataset": {"uri": f"file://{folder}", "format": "ImageFolder", "classes": 10},
            "pipeline": [
                {"op": "Decode"},
                {"op": "RandomResizedCrop", "size": {"height": sizes["CROP"], "width": sizes["CROP"]}},
                {"op": "HorizontalFlip"},
                *([blur] if blurs else []),
                {"op": "Normalize", "mean": [0.5] * 3, "std": [0.25] * 3},
            ],
            "training": {
                "script": {"command": [sys.executable, str(script)]},
                "batchSizePerWorker": sizes["BATCH"],
                "maxSteps": steps,
            },
            "roles": [
                {"name": "head", "type": "Head"},
                {"name": "cpu", "type": "CPUWorker", "replicas": 1},
                {"name": "gpu", "type": "GPUWorker", "replicas": 1, "gpusPerReplica": int(sizes["DEVICE"] != "cpu")},
            ],
        },
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--pipeline", choices=["imagenet", "blur"], nargs="+", default=["imagenet", "blur"])
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--small", action="store_true", help="a rehearsal on the CPU")
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
    options = parser.parse_args()
    sizes = SMALL if options.small else LARGE
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        made = ["--format", "ImageFolder", "--classes", "10", "--samples", str(sizes["PICTURES"])]
        made += ["--validation-samples", "10", "--size", str(sizes["SIDE"])]
        subprocess.run(
            [RUNTIME, "make-dataset", *made, "--seed", "7", folder / "pictures"],
            check=True,
            capture_output=True,
        )
        pictures = folder / "pictures/train"
        for name, text in (("ours.py", OURS), ("theirs.py", THEIRS), ("ceiling.py", CEILING)):
            (folder / name).write_text(text)
        environment = {
            **os.environ,
            **{f"BENCH_{name}": str(value) for name, value in sizes.items()},
            **({"OMP_NUM_THREADS": "1"} if options.small else {}),
            "PYTHONPATH": str(SOURCE / "python"),
            "BENCH_RESULT": str(folder / "result"),
            "BENCH_STEPS": str(options.steps),
        }

        def rate(command):
            print(f"begins: {pathlib.Path(command[1]).name}", flush=True)
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                logs = [path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("out/logs/*"))]
                sys.exit("\n".join([done.stdout[-3000:], *logs]))
            return json.loads((folder / "result").read_text())["rate"]

        ceiling = rate([sys.executable, folder / "ceiling.py"])
        figures = []
        for pipeline in options.pipeline:
            blurs = BLURS if pipeline == "blur" else 0
            (folder / "job.yaml").write_text(
                json.dumps(manifest(pictures, folder / "ours.py", blurs, options.steps, sizes))
            )
            ours = rate([RUNTIME, "local", folder / "job.yaml", "--output", folder / "out"])
            theirs = rate([sys.executable, folder / "theirs.py", str(pictures), str(blurs), str(options.workers)])
            print(
                f"{pipeline}: hetero.Stream {ours:.0f} samples/s, DataLoader with {options.workers} processes "
                f"{theirs:.0f}, ratio {ours / theirs:.2f}; without input {ceiling:.0f}, "
                f"of which ours is {ours / ceiling:.3f}",
                flush=True,
            )
            figures.append(
                {"pipeline": pipeline, "hetero": ours, "dataLoader": theirs, "ceiling": ceiling}
                | {"loaderProcesses": options.workers, "steps": options.steps}
            )
        if options.json:
            options.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
