#!/usr/bin/env python3
"""ViT-B/16 behind ten blurs (examples/vit-blur.yaml) on this machine's first GPU: alone and with CPU workers.

    tests/bench/gpu/vit_blur.py [--alone 2 4] [--precision FP32 BF16] [--steps 150] [--pairs 1]
    tests/bench/gpu/vit_blur.py --workers 0 1 2 [--own-cores on off] [--gpu-cores 4] [--json FILE]

`alone N`: N cores and no CPU worker, as on a GPU node that prepares its own pictures. `together`: all cores, one CPU
worker. Each runs once per pair, in turn; the ceiling is the trainer's own rate on a batch that costs nothing.

With --workers the trainer has --gpu-cores cores to itself, as on a node of its own, and each CPU worker half of the
others. `on`: its own cores serve beside the workers by measured rate, as on a cluster (--local-share Balanced); `off`:
only when no CPU worker is there, as in `hetero-runtime local` otherwise (LastResort). Without a worker they are all
there is either way; `on` then leaves two of them to training.

Needs a GPU and `scripts/cuda.sh`. --small needs neither: resnet18, four pictures of 32 x 32 a batch, on the CPU. Its
figures mean nothing.
"""

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("HETERO_BIN_DIR", SOURCE / "build/release/bin"))
JOB = SOURCE / "examples/vit-blur.yaml"
SMALL = {
    "training.model": "{name: resnet18}",
    "training.batchSizePerWorker": 4,
    "dataset.samples": 64,
    "dataset.image": "{height: 32, width: 32, channels: 3}",
}


def run(folder, cores, workers, precision, options, trainer=None):
    sets = {
        "roles.cpu.replicas": workers,
        "roles.gpu.gpusPerReplica": 0 if options.small else 1,
        "training.precision": precision,
        "training.maxSteps": options.steps,
        **(SMALL if options.small else {}),
    }
    command = [str(BIN / "hetero-runtime"), "local", str(JOB), "--output", str(folder)]
    command += [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    if trainer or options.trainer:
        command += ["--trainer", str(trainer or options.trainer)]
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


def trainer_on(place, cores, own_cores, options):
    """A program that runs hetero-trainer on these cores, its share of the preprocessing as asked for."""
    program = options.trainer or BIN / ("hetero-trainer" if options.small else "cuda/hetero-trainer")
    share = "Balanced" if own_cores == "on" else "LastResort"
    place.write_text(
        "#!/usr/bin/env bash\n"
        f"exec taskset -c {','.join(map(str, cores))} {shlex.quote(str(program))} "
        f'"${{@/#LastResort/{share}}}"\n'
    )
    place.chmod(0o755)
    return place


def split(every, gpu_cores, workers):
    """The trainer's cores, and those of the CPU workers: half of the others for each of up to two."""
    own = every[: max(1, min(gpu_cores, len(every) // 2))]
    others = every[len(own) :] or every
    return own, others[: max(1, len(others) * min(workers, 2) // 2)] if workers else own


def matrix(options, every, place):
    found = []
    for precision in options.precision:
        for workers in options.workers:
            for own_cores in options.own_cores:
                own, others = split(every, options.gpu_cores, workers)
                folder = place / f"{precision}-{workers}-{own_cores}"
                trainer = trainer_on(place / "trainer", own, own_cores, options)
                report = run(folder, others, workers, precision, options, trainer)
                figures = {
                    "precision": precision,
                    "workers": workers,
                    "ownCores": own_cores,
                    "gpuCores": len(own),
                    "workerCores": len(others) if workers else 0,
                    "steps": options.steps,
                }
                for name in ("samplesPerSecond", "ceilingSamplesPerSecond", "dataWaitPercent", "streamDigest"):
                    figures[name] = report.get(name)  # absent: not measured
                figures["phaseSeconds"] = report.get("phaseSeconds", {})
                figures["placement"] = {entry["op"]: entry["where"] for entry in report["placement"]}
                found.append(figures)
                words = [f"{name} {value}" for name, value in figures.items() if not isinstance(value, dict)]
                print(", ".join(words), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found))


def alone_and_together(options, every, place):
    for precision in options.precision:
        rates = {}
        for pair in range(options.pairs):
            sides = [(f"alone {count}", every[:count], 0) for count in options.alone]
            sides.append(("together", every, 1))
            for label, cores, workers in sides if pair % 2 == 0 else sides[::-1]:
                folder = place / f"{precision}-{label}-{pair}".replace(" ", "-")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alone", type=int, nargs="*", default=[2, 4], help="cores of the GPU node")
    parser.add_argument("--precision", nargs="+", default=["FP32", "BF16"])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--trainer", help="another build of hetero-trainer, to compare")
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--workers", type=int, nargs="+", help="numbers of CPU workers, each with --own-cores")
    parser.add_argument("--own-cores", nargs="+", choices=["on", "off"], default=["on", "off"])
    parser.add_argument("--gpu-cores", type=int, default=4, help="of the trainer, with --workers")
    parser.add_argument("--json", type=pathlib.Path, help="file for the figures, with --workers")
    parser.add_argument("--small", action="store_true", help="a rehearsal on the CPU")
    options = parser.parse_args()
    if options.json and options.workers is None:
        parser.error("--json is for --workers")
    every = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as place:
        (alone_and_together if options.workers is None else matrix)(options, every, pathlib.Path(place))


if __name__ == "__main__":
    main()
