#!/usr/bin/env python3
"""CPU time of all processes per sample read from an object store: MosaicML Streaming, webdataset and s3torchconnector,
each with torch's DataLoader and two workers, against a script job with two CPU workers.

    tests/bench/storage/peers.py [--pairs 5] [--only ours_file,ours,mosaicml,webdataset,s3torch]

One versitygw on this machine serves the same JPEG files to all, in shards of 8 MB: of WebDataset, and as MDS to MosaicML. All decode, crop to 224 x 224, flip and normalise batches of 32,
which one process adds up. Each side reads a set once, then one three times as large; the difference is free of what
starting costs. The server's own time is left out. Printed too is what the store costs us beside the same shards in a
folder. Needs what scripts/setup_python.sh installs; installs the peers (peers.txt) beside it.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import server

sys.path.append(str(pathlib.Path(__file__).parents[1]))
import peers_environment

PYTHON = server.ROOT / ".deps/python/bin/python"
PEERS = server.ROOT / ".deps/peers"
REQUIREMENTS = pathlib.Path(__file__).with_name("peers.txt")
SMALL, SIDE, SHARD = 1024, 320, "8MB"
SETS = {"small": SMALL, "large": 3 * SMALL}

# What all peers share. Each sums up the batches of `loader`.
COMMON = """
import io, os, sys, torch, torchvision
from PIL import Image
from torchvision.transforms import v2 as T
torch.set_num_threads(1)
endpoint, name, place = sys.argv[1:4]
picture = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.PILToTensor(),
                     T.ToDtype(torch.float32, scale=True), T.Normalize([0.5] * 3, [0.25] * 3)])
def decode(jpeg):
    return picture(Image.open(io.BytesIO(jpeg)).convert("RGB"))
def consume(loader):
    count, total = 0, 0.0
    for images, labels in loader:
        count += len(labels)
        total += images.sum().item()
    print("samples", count)
"""

MOSAICML = """
from streaming import StreamingDataset
class Pictures(StreamingDataset):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return decode(sample["jpg"]), sample["cls"]
pictures = Pictures(remote=f"s3://bucket/mds-{name}", local=f"{place}/cache", shuffle=True, batch_size=32)
consume(torch.utils.data.DataLoader(pictures, batch_size=32, num_workers=2))
"""

WEBDATASET = """
import boto3, webdataset
client = boto3.client("s3", endpoint_url=endpoint)
keys = [o["Key"] for o in client.list_objects_v2(Bucket="bucket", Prefix=f"wds-{name}/")["Contents"]]
# A reader that has seen the archive's end closes the pipe, which curl calls an error.
urls = [client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": key})
        for key in keys if key.endswith(".tar")]
pictures = webdataset.WebDataset([f"pipe:curl -sf '{url}' || [ $? = 23 ]" for url in urls], shardshuffle=len(urls))
pictures = pictures.shuffle(1000).to_tuple("jpg", "cls").map_tuple(decode, int).batched(32)
consume(webdataset.WebLoader(pictures, batch_size=None, num_workers=2))
"""

S3TORCH = """
import tarfile
from s3torchconnector import S3ClientConfig, S3IterableDataset
class Pictures(torch.utils.data.IterableDataset):
    def __iter__(self):
        shards = S3IterableDataset.from_prefix(
            f"s3://bucket/wds-{name}/", region=os.environ["AWS_REGION"], endpoint=endpoint, enable_sharding=True,
            s3client_config=S3ClientConfig(force_path_style=True))
        for shard in shards:
            if not shard.key.endswith(".tar"):
                continue
            sample = {}
            with tarfile.open(fileobj=shard, mode="r|") as archive:
                for member in archive:
                    stem, kind = member.name.rsplit(".", 1)
                    sample[kind] = archive.extractfile(member).read()
                    if "jpg" in sample and "cls" in sample:
                        yield decode(sample["jpg"]), int(sample["cls"])
                        sample = {}
consume(torch.utils.data.DataLoader(Pictures(), batch_size=32, num_workers=2))
"""

OURS = """
import torch, hetero
torch.set_num_threads(1)
count, total = 0, 0.0
for epoch in hetero.Stream().epochs():
    for images, labels in epoch:
        count += len(labels)
        total += images.sum().item()
print("samples", count)
"""

JOB = """
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {{name: peers}}
spec:
  dataset: {{uri: "{uri}", format: WebDataset, classes: 10}}
  pipeline:
  - {{op: Decode}}
  - {{op: RandomResizedCrop, size: {{height: 224, width: 224}}}}
  - {{op: HorizontalFlip}}
  - {{op: Normalize, mean: [0.5, 0.5, 0.5], std: [0.25, 0.25, 0.25]}}
  training: {{script: {{command: ["{python}", "{script}"]}}, batchSizePerWorker: 32, epochs: 1}}
  roles:
  - {{name: head, type: Head}}
  - {{name: cpu, type: CPUWorker, replicas: 2}}
  - {{name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}}
"""

# Puts the pictures of a folder of classes into the bucket as MDS.
STORE = """
import pathlib, sys
from streaming import MDSWriter
name, folder = sys.argv[1:3]
files = sorted(pathlib.Path(folder).glob("*/*"))
classes = sorted({file.parent.name for file in files})
with MDSWriter(out=f"s3://bucket/mds-{name}", columns={"jpg": "bytes", "cls": "int"}, size_limit=8 << 20) as shards:
    for file in files:
        shards.write({"jpg": file.read_bytes(), "cls": classes.index(file.parent.name)})
"""


def cpu_milliseconds(command: list[str], samples: int, env: dict[str, str]) -> float:
    """Of the process and all that it has waited for; it is given ten minutes, and must have had so many samples."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=env)
        deadline = time.monotonic() + 600
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode(errors="replace")
        if process.returncode or f"samples {samples}\n" not in text:
            sys.exit(f"peers: {command[:3]} ended with {process.returncode}:\n{text[-4000:]}")
    return 1000 * (usage.ru_utime + usage.ru_stime)


class Sides:
    """Each gives the CPU milliseconds of one pass over a set."""

    def __init__(self, folder: pathlib.Path, port: int) -> None:
        self._folder = folder
        self._endpoint = f"http://127.0.0.1:{port}"
        self._env = {
            **server.environment(port),
            "S3_ENDPOINT_URL": self._endpoint,
            "PYTHONPATH": str(server.ROOT / "python"),
            "OMP_NUM_THREADS": "1",
        }
        self._script = folder / "ours.py"
        self._script.write_text(OURS)

    def store(self) -> None:
        for name, samples in SETS.items():
            files = self._folder / name
            server.run(
                ["make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples", str(samples)]
                + ["--validation-samples", "10", "--size", str(SIDE), "--seed", "7", str(files)],
                self._env,
            )
            for place in (f"s3://bucket/wds-{name}", f"file://{self._folder}/wds-{name}"):
                server.run(["pack", f"{files}/train", place, "--shard-size", SHARD], self._env)
            command = [PEERS / "bin/python", "-c", STORE, name, files / "train"]
            subprocess.run(command, env=self._env, check=True, timeout=600)

    def _ours(self, name: str, uri: str) -> float:
        job = self._folder / "job.yaml"
        job.write_text(JOB.format(uri=uri, python=PYTHON, script=self._script))
        with tempfile.TemporaryDirectory(dir=self._folder) as out:
            return cpu_milliseconds([str(server.RUNTIME), "local", str(job), "--output", out], SETS[name], self._env)

    def ours(self, name: str) -> float:
        return self._ours(name, f"s3://bucket/wds-{name}")

    def ours_file(self, name: str) -> float:
        return self._ours(name, f"file://{self._folder}/wds-{name}")

    def _peer(self, program: str, name: str) -> float:
        with tempfile.TemporaryDirectory(dir=self._folder) as place:
            command = [str(PEERS / "bin/python"), "-c", COMMON + program, self._endpoint, name, place]
            return cpu_milliseconds(command, SETS[name], self._env)

    def mosaicml(self, name: str) -> float:
        return self._peer(MOSAICML, name)

    def webdataset(self, name: str) -> float:
        return self._peer(WEBDATASET, name)

    def s3torch(self, name: str) -> float:
        return self._peer(S3TORCH, name)


NAMES = ["ours", "ours_file", "mosaicml", "webdataset", "s3torch"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5, help="rounds, each of all sides")
    parser.add_argument("--only", default=",".join(NAMES), help="sides, separated by commas")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(NAMES):
        parser.error(f"--only: {', '.join(sorted(unknown))}: use {', '.join(NAMES)}")
    peers_environment.install(PEERS, REQUIREMENTS)
    with tempfile.TemporaryDirectory() as place, server.serving(place) as port:
        sides = Sides(pathlib.Path(place), port)
        sides.store()
        rounds: list[dict[str, float]] = []
        for number in range(options.pairs):
            figures = {}
            for name in names[number % len(names) :] + names[: number % len(names)]:
                side = getattr(sides, name)
                figures[name] = (side("large") - side("small")) / (SETS["large"] - SETS["small"])
            rounds.append(figures)
            print(f"round {number + 1}: " + ", ".join(f"{name} {figures[name]:.3f} ms" for name in names), flush=True)
    print("CPU per sample: " + ", ".join(f"{name} {statistics.median(f[name] for f in rounds):.3f} ms" for name in names))
    if "ours" not in names:
        return
    if "ours_file" in names:
        more = sorted(figures["ours"] - figures["ours_file"] for figures in rounds)
        print(f"the store over a folder: {statistics.median(more):+.3f} ms ({more[0]:+.3f} to {more[-1]:+.3f}); target 0.30")
    for name in sorted(set(names) - {"ours", "ours_file"}):
        ratios = sorted(figures["ours"] / figures[name] for figures in rounds)
        print(f"ours over {name}: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}); target 0.5")


if __name__ == "__main__":
    main()
