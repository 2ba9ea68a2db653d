"""Our training step against the same step in Python eager of the same LibTorch, in turn; CPU seconds of one thread.

    python -m pip install torch==2.11.0 torchvision==0.26.0
    python tests/bench/train_step/compare.py build/release/tests/train_step [--pairs 20] [MODEL ...]

Both processes stay alive, and take their steps alternately; the one that begins changes from pair to pair. Prints per
model the median of the ratios ours / Python with its 95 % interval (bootstrap). Python uses channels last for
convolutions too, and torch.optim's default implementation for the CPU as well as fused=True, whichever is faster.
"""

import argparse
import random
import statistics
import subprocess
import sys
import time

CASES = {  # model: (batch, side, optimizer, steps per turn)
    "resnet18": (8, 224, "SGD", 1),
    "resnet50": (4, 224, "SGD", 1),
    "vit_b_16": (2, 224, "AdamW", 1),
}


def peer(model_name, batch, side, optimizer_name, fused):
    """Takes steps on request, as train_step.cpp does."""
    import torch
    import torchvision

    torch.set_num_threads(1)
    model = getattr(torchvision.models, model_name)().train()
    images = torch.rand(batch, 3, side, side)
    if model_name.startswith("resnet"):
        model = model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.arange(batch)
    rate = {"lr": 1e-4, "weight_decay": 1e-4, "fused": fused or None}
    optimizer = (torch.optim.SGD(model.parameters(), momentum=0.9, **rate) if optimizer_name == "SGD"
                 else torch.optim.AdamW(model.parameters(), **rate))
    for line in sys.stdin:
        begin = time.process_time()
        for _ in range(int(line)):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            last = loss.item()
            optimizer.step()
        print(time.process_time() - begin, last, flush=True)


class Stepper:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def steps(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline().split()[0]) / count

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def interval(ratios, rounds=2000):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def compare(program, model, pairs):
    batch, side, optimizer, count = CASES[model]
    arguments = [model, str(batch), str(side), optimizer]
    ours = Stepper([program, *arguments])
    python = {name: Stepper([sys.executable, __file__, "--peer", name, *arguments]) for name in ("default", "fused")}
    for stepper in (ours, *python.values()):
        stepper.steps(3)
    trial = {name: min(stepper.steps(count) for _ in range(3)) for name, stepper in python.items()}
    fastest = min(trial, key=trial.get)
    for name, stepper in python.items():
        if name != fastest:
            stepper.end()
    other, seconds = python[fastest], []
    for pair in range(pairs):
        order = (ours, other) if pair % 2 == 0 else (other, ours)
        taken = {stepper: stepper.steps(count) for stepper in order}
        seconds.append((taken[ours], taken[other]))
    ours.end()
    other.end()
    ratios = [a / b for a, b in seconds]
    low, high = interval(ratios)
    print(f"train_step {model} batch {batch} side {side} {optimizer}: ours / Python ({fastest} optimiser) = "
          f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}] over {pairs} pairs; "
          f"{statistics.median(s[0] for s in seconds):.3f} and {statistics.median(s[1] for s in seconds):.3f} CPU s",
          flush=True)


def main():
    if sys.argv[1:2] == ["--peer"]:
        implementation, model, batch, side, optimizer = sys.argv[2:]
        return peer(model, int(batch), int(side), optimizer, implementation == "fused")
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", default=list(CASES))
    parser.add_argument("--pairs", type=int, default=20)
    arguments = parser.parse_args()
    for model in arguments.models or CASES:
        compare(arguments.program, model, arguments.pairs)


if __name__ == "__main__":
    sys.exit(main())
