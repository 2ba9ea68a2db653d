#!/usr/bin/env python3
"""What the distance to an object store costs: the input path of a job whose shards lie in a bucket, with 35 ms between
them and without.

The server is versitygw on this machine, behind a proxy of this program that holds each byte of a reply back for so long
and passes any number of bytes on. The same job is run with both delays, in turn; printed is the ratio of samples per
second. The target is 0.95.

    tests/bench/storage/latency.py [--pairs 5] [--delay 0.035] [--shuffle "mode: Block, blockSize: 64"]
"""

import argparse
import asyncio
import json
import pathlib
import statistics
import tempfile
import threading
import time

import server

JOB = """
apiVersion: training.hetero.dev/v1alpha1
kind: HeteroTrainingJob
metadata: {name: latency}
spec:
  dataset: {uri: "s3://bucket/set", format: WebDataset, classes: 10, shuffle: {SHUFFLE}}
  pipeline:
  - {op: Decode}
  - {op: RandomResizedCrop, size: {height: 224, width: 224}}
  - {op: HorizontalFlip}
  - {op: Normalize, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}
  training: {model: {name: resnet18}, batchSizePerWorker: 64, maxSteps: STEPS, seed: 7}
  roles:
  - {name: head, type: Head}
  - {name: cpu, type: CPUWorker, replicas: 1}
  - {name: gpu, type: GPUWorker, replicas: 1, gpusPerReplica: 0}
"""


class Delay:
    """Passes connections on to a port of this machine; what comes back comes `seconds` later."""

    def __init__(self, port: int) -> None:
        self.seconds = 0.0
        self._port = port
        self._loop = asyncio.new_event_loop()
        self.port = 0
        ready = threading.Event()
        threading.Thread(target=self._run, args=(ready,), daemon=True).start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        async def serve() -> None:
            server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        self._loop.run_until_complete(serve())

    def on_request(self, data: bytes) -> None:
        """For those who count."""

    def on_reply(self, data: bytes) -> None:
        """Likewise."""

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.close()
            return

        async def requests() -> None:
            while data := await reader.read(1 << 16):
                self.on_request(data)
                up_writer.write(data)
                await up_writer.drain()
            up_writer.close()

        async def replies() -> None:
            while data := await up_reader.read(1 << 20):
                self.on_reply(data)
                self._loop.call_later(self.seconds, writer.write, data)
            self._loop.call_later(self.seconds + 0.1, writer.close)

        try:
            await asyncio.gather(requests(), replies())
        except OSError:
            writer.close()


def measure(folder: str, steps: int, shuffle: str, port: int) -> tuple[float, float]:
    """Samples per second, and CPU milliseconds of the worker for each."""
    manifest = pathlib.Path(folder, "job.yaml")
    manifest.write_text(JOB.replace("STEPS", str(steps)).replace("SHUFFLE", shuffle))
    out = pathlib.Path(folder, f"out-{time.monotonic_ns()}")
    server.run(["local", str(manifest), "--input-only", "--output", str(out)], server.environment(port))
    report = json.loads((out / "report.json").read_text())
    worker = next(one for one in report["workers"] if one["role"] == "cpu")
    return report["samplesConsumed"] / report["trainSeconds"], 1000 * worker["cpuSeconds"] / worker["samples"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--shuffle", default="mode: Full", help="dataset.shuffle of the job")
    parser.add_argument("--delay", type=float, default=0.035, help="seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with server.serving(folder) as port:
            proxy = Delay(port)
            server.run(["make-dataset", f"{folder}/set", "--samples", "4096", "--validation-samples", "100", "--size", "256"],
                server.environment(port))  # fmt: skip
            server.run(["pack", f"{folder}/set/train", "s3://bucket/set", "--shard-size", "8MB"], server.environment(port))
            ratios = []
            for _ in range(arguments.pairs):
                proxy.seconds = 0.0
                near, near_cpu = measure(folder, arguments.steps, arguments.shuffle, proxy.port)
                proxy.seconds = arguments.delay
                far, far_cpu = measure(folder, arguments.steps, arguments.shuffle, proxy.port)
                ratios.append(far / near)
                print(f"{near:.0f} samples/s ({near_cpu:.2f} ms of CPU each), {far:.0f} with the delay ({far_cpu:.2f} ms)", flush=True)
            print(
                f"{arguments.shuffle}: samples/s with {1000 * arguments.delay:.0f} ms to the store over those without: "
                f"{statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}], {arguments.pairs} pairs; target 0.95"
            )


if __name__ == "__main__":
    main()
