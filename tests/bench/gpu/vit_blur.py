#!/usr/bin/env python3
"""ViT-B/16 behind ten blurs (examples/vit-blur.yaml) on this machine's first GPU: alone and with CPU workers.

    tests/bench/gpu/vit_blur.py [--alone 2 4] [--precision FP32 BF16] [--steps 150] [--pairs 1]

`alone N`: N cores and no CPU worker, as on a GPU node that prepares its own pictures. `together`: all cores, one CPU
worker. Each runs once per pair, in turn; the ceiling is the trainer's own rate on a batch that costs nothing. Needs a
GPU and `scripts/cuda.sh`.
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
BIN = pathlib.Path(os.environ.get("HETERO_BIN_DIR", SOURCE / "build/release/bin"))
JOB = SOURCE / "examples/vit-blur.yaml"


def run(folder, cores, workers, precision, options):
    sets = {
        "roles.cpu.replicas": workers,
        "roles.gpu.gpusPerReplica": 1,
        "training.precision": precision,
        "training.maxSteps": options.steps,
    }
    command = [str(BIN / "hetero-runtime"), "local", str(JOB), "--output", str(folder)]
    command += [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    if options.trainer:
        command += ["--trainer", options.trainer]
    command.append("--ceiling-probe")
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    if done.returncode:
        logs = [path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("logs/*"))]
        sys.exit("\n".join([done.stdout[-3000:], *logs]))
    return json.loads((folder / "report.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alone", type=int, nargs="*", default=[2, 4], help="cores of the GPU node")
    parser.add_argument("--precision", nargs="+", default=["FP32", "BF16"])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--trainer", help="another build of hetero-trainer, to compare")
    parser.add_argument("--pairs", type=int, default=1)
    options = parser.parse_args()
    every = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        for precision in options.precision:
            rates = {}
            for pair in range(options.pairs):
                sides = [(f"alone {count}", every[:count], 0) for count in options.alone]
                sides.append(("together", every, 1))
                for label, cores, workers in sides if pair % 2 == 0 else sides[::-1]:
                    folder = pathlib.Path(name) / f"{precision}-{label}-{pair}".replace(" ", "-")
                    report = run(folder, cores, workers, precision, options)
                    rate = report["samplesPerSecond"]
                    rates.setdefault(label, []).append(rate)
                    line = f"{precision} {label}: {rate:.0f} samples/s, {report['dataWaitPercent']:.1f} % waiting"
                    if workers:
                        ceiling = report["ceilingSamplesPerSecond"]
                        rates.setdefault("ceiling", []).append(ceiling)
                        line += f", ceiling {ceiling:.0f}, digest {report['streamDigest']}"
                    phases = ", ".join(f"{key} {value:.2f}" for key, value in report["phaseSeconds"].items() if value)
                    print(f"{line}; {phases}", flush=True)
            medians = {label: statistics.median(values) for label, values in rates.items()}
            together = medians["together"]
            ratios = [f"{together / medians[f'alone {count}']:.2f} x {count} cores alone" for count in options.alone]
            ratios.append(f"{together / medians['ceiling']:.3f} of the ceiling")
            print(f"{precision}: together {together:.0f} samples/s: {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
