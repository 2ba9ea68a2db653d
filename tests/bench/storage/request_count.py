#!/usr/bin/env python3
"""How many requests and bytes one epoch takes from an object store, by the order of the samples.

The server is versitygw on this machine, behind a proxy that counts; eight CPU workers read WebDataset shards. Printed are,
for each order, requests over samples, counted and as report.json estimates them, bytes over those of the dataset (the target
is 1.1), and the workers' CPU time. With mode Block a batch is a block, where blockSize divides or is what a trainer takes
at a time.

    tests/bench/storage/request_count.py
"""

import argparse
import json
import pathlib
import tempfile

import latency
import server

ORDERS = {
    "Full": "mode: Full",
    "Block, blockSize of a batch (64)": "mode: Block, blockSize: 64",
    "Block, blockSize 1024": "mode: Block, blockSize: 1024",
    "None": "mode: None",
}


class Counting(latency.Delay):
    """Passes connections on, and counts what goes through them."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.requests = 0
        self.bytes = 0

    def on_request(self, data: bytes) -> None:
        self.requests += data.count(b" HTTP/1.1\r\n")

    def on_reply(self, data: bytes) -> None:
        self.bytes += len(data)


def manifest(order: str, workers: int) -> str:
    text = latency.JOB.replace("maxSteps: STEPS", "epochs: 1, lastBatch: Keep")
    text = text.replace("SHUFFLE", order)
    return text.replace("type: CPUWorker, replicas: 1", f"type: CPUWorker, replicas: {workers}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--samples", type=int, default=4096)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server.serving(folder) as port:
        proxy = Counting(port)
        environment = server.environment(proxy.port)
        make = ["make-dataset", f"{folder}/set", "--samples", str(arguments.samples), "--validation-samples", "10"]
        server.run([*make, "--size", "256"], environment)
        server.run(["pack", f"{folder}/set/train", "s3://bucket/set", "--shard-size", "8MB"], environment)
        size = sum(file.stat().st_size for file in pathlib.Path(folder).rglob("shard-*.tar"))
        samples = arguments.samples
        for name, order in ORDERS.items():
            job = pathlib.Path(folder, "job.yaml")
            job.write_text(manifest(order, arguments.workers))
            out = pathlib.Path(folder, f"out-{len(name)}-{order.count(':')}-{order.split()[-1]}")
            # What opening takes is not what an epoch takes.
            proxy.requests = proxy.bytes = 0
            server.run(["local", str(job), "--input-only", "--output", str(out), "--set", "training.maxSteps=1"], environment)
            opening = proxy.requests, proxy.bytes
            proxy.requests = proxy.bytes = 0
            server.run(["local", str(job), "--input-only", "--output", f"{out}-epoch"], environment)
            report = json.loads(pathlib.Path(f"{out}-epoch", "report.json").read_text())
            cpu = sum(one["cpuSeconds"] for one in report["workers"] if one["role"] == "cpu")
            estimated = report["storage"]["orders"][0]["requests"] / samples
            print(
                f"{name}: {proxy.requests} requests ({opening[0]} of a job of one step), "
                f"{(proxy.requests - opening[0]) / samples:.3f} a sample ({estimated:.3f} by the report); bytes over the dataset's "
                f"{(proxy.bytes - opening[1]) / size:.3f}; {1000 * cpu / samples:.2f} ms of CPU a sample",
                flush=True,
            )


if __name__ == "__main__":
    main()
