#!/usr/bin/env python3
"""CPU time of what consumes batches: a script and its agent against the C++ consumer of `--input-only`.

    tests/bench/loader/consumer.py [--pairs 5]

One rank, one CPU worker on the same machine, uint8 pictures that neither side looks at: what is compared is the way of
a batch to its consumer. The worker has so much to do that batches come one by one, as to a model that trains on them.
Each side runs with some batches and with three times as many, in turn; the difference is free of what starting costs.
Two sizes: 224 x 224 pixels, 64 a batch, and 16 x 16, one a batch, where the cost of a batch itself shows. Needs what
scripts/setup_python.sh installs.
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

SCRIPT = """
import hetero
for epoch in hetero.Stream(raw=True).epochs():
    for batch in epoch:
        pass
"""


def manifest(side, batch, blurs, steps, command):
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
            "pipeline": [{"op": "GaussianBlur", "kernelSize": 11, "sigma": {"min": 0.1, "max": 2.0}, "repeat": blurs}],
            "training": {"script": {"command": command}, "batchSizePerWorker": batch, "maxSteps": steps, "seed": 7},
            "roles": [
                {"name": "head", "type": "Head"},
                {"name": "cpu", "type": "CPUWorker", "replicas": 1},
                {"name": "gpu", "type": "GPUWorker", "replicas": 1, "gpusPerReplica": 0},
            ],
        },
    }


def run(folder, side, batch, blurs, steps, with_script):
    """CPU seconds of the consumer's processes."""
    job = manifest(side, batch, blurs, steps, [str(PYTHON), str(folder / "script.py")])
    (folder / "job.yaml").write_text(json.dumps(job))
    command = [RUNTIME, "local", folder / "job.yaml", "--output", folder / "out"]
    if not with_script:
        command.append("--input-only")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    report = json.loads((folder / "out/report.json").read_text())
    return next(worker["cpuSeconds"] for worker in report["workers"] if worker["name"] == "gpu-0")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "script.py").write_text(SCRIPT)
        for side, batch, blurs, steps in ((224, 64, 1, 250), (16, 1, 100, 2000)):
            found = []
            for _ in range(pairs):
                cost = {}
                for with_script in (False, True):
                    few, many = (run(folder, side, batch, blurs, count, with_script) for count in (steps, 3 * steps))
                    cost[with_script] = (many - few) / (2 * steps)
                found.append((cost[False], cost[True]))
            ratio = statistics.median(script / native for native, script in found)
            more = statistics.median(script - native for native, script in found)
            native, script = (1e6 * statistics.median(costs) / batch for costs in zip(*found, strict=True))
            print(
                f"{batch} x {side}x{side}: script {script:.1f} us a sample, C++ {native:.1f} us, ratio {ratio:.2f}; "
                f"{1e6 * more:.0f} us more a batch (medians of {pairs} pairs)",
                flush=True,
            )


if __name__ == "__main__":
    main()
