#!/usr/bin/env python3
"""CPU time of what consumes batches: a script and its agent against the C++ consumer of `--input-only`.

    tests/bench/loader/consumer.py [--pairs 5]

One rank, one CPU worker on the same machine, uint8 pictures that neither side looks at: what is compared is the way of a
batch to its consumer. Each side runs with some batches and with three times as many, in turn; the difference is free of what
starting costs. Two sizes: 224 x 224 pixels, 64 a batch, and one picture of 8 x 8, where the cost of a batch itself shows.
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

SCRIPT = """
import pathlib, sys, time
import hetero
stream = hetero.Stream(raw=True)
for epoch in stream.epochs():
    for batch in epoch:
        pass
pathlib.Path(sys.argv[1]).write_text(str(time.process_time()))
"""


def manifest(side, batch, steps, command):
    return {
        "apiVersion": "training.hetero.dev/v1alpha1",
        "kind": "HeteroTrainingJob",
        "metadata": {"name": "consumer"},
        "spec": {
            "dataset": {
                "uri": "synthetic://",
                "samples": batch * 64,
                "classes": 4,
                "image": {"height": side, "width": side, "channels": 3},
            },
            "pipeline": [{"op": "HorizontalFlip"}],
            "training": {"script": {"command": command}, "batchSizePerWorker": batch, "maxSteps": steps, "seed": 7},
            "roles": [
                {"name": "head", "type": "Head"},
                {"name": "cpu", "type": "CPUWorker", "replicas": 1},
                {"name": "gpu", "type": "GPUWorker", "replicas": 1, "gpusPerReplica": 0},
            ],
        },
    }


def run(folder, side, batch, steps, with_script):
    """CPU seconds of the consumer's processes."""
    said = folder / "seconds"
    job = manifest(side, batch, steps, [sys.executable, str(folder / "script.py"), str(said)])
    (folder / "job.yaml").write_text(json.dumps(job))
    command = [RUNTIME, "local", folder / "job.yaml", "--output", folder / "out"]
    if not with_script:
        command.append("--input-only")
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE / "python")}
    )
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    report = json.loads((folder / "out/report.json").read_text())
    seconds = next(worker["cpuSeconds"] for worker in report["workers"] if worker["name"] == "gpu-0")
    return seconds + (float(said.read_text()) if with_script else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "script.py").write_text(SCRIPT)
        for side, batch, steps in ((224, 64, 100), (8, 1, 4000)):
            found = []
            for _ in range(pairs):
                cost = {}
                for with_script in (False, True):
                    few, many = (run(folder, side, batch, count, with_script) for count in (steps, 3 * steps))
                    cost[with_script] = (many - few) / (2 * steps)
                found.append((cost[False], cost[True]))
            ratio = statistics.median(script / native for native, script in found)
            more = statistics.median(script - native for native, script in found)
            native, script = (statistics.median(side) for side in zip(*found))
            print(
                f"{batch} x {side}x{side}: script {1e6 * script / batch:.1f} us a sample, C++ {1e6 * native / batch:.1f}, "
                f"ratio {ratio:.2f}; {1e6 * more:.0f} us more a batch (medians of {pairs} pairs)"
            )


if __name__ == "__main__":
    main()
