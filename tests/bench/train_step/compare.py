"""Our training step against the same step in Python eager of the same LibTorch, in turn; CPU seconds of one thread.

    python -m pip install torch==2.11.0 torchvision==0.26.0
    python tests/bench/train_step/compare.py build/release/tests/train_step [MODEL ...] [--pairs 20] [--side 224] [--ranks 2]

Both processes stay alive, and take their steps alternately; the one that begins changes from pair to pair. Prints per
model the median of the ratios ours / Python with its 95 % interval (bootstrap). Python uses channels last for
convolutions too, and torch.optim's default implementation for the CPU as well as fused=True, whichever is faster.

With --ranks 2 each side trains in two processes with DDP over Gloo, and in one without, in turn. What DDP costs is half
the CPU seconds of the two processes less those of the one.

Our programs keep the memory that they free; Python gives large pieces back to the kernel, and pays for fresh pages in
every step. With --keep-memory Python's allocator is set as ours. What DDP costs is comparable only then: without it,
Python's one process pays for fresh gradients, and each of its two keeps them in DDP's buckets.

With --device cuda both train on this machine's first GPU and seconds are the clock's, of steps that the GPU has done; the
program is build/*/tests/train_step_cuda. Both choose cuDNN's algorithms by trial and compute convolutions in float32.

A process that has not taken its steps after --deadline seconds is killed, and the comparison fails.
"""

import argparse
import datetime
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

CASES = {  # model: (batch, side, optimizer, steps per turn)
    "resnet18": (8, 224, "SGD", 1),
    "resnet50": (4, 224, "SGD", 1),
    "vit_b_16": (2, 224, "AdamW", 1),
}
ON_GPU = {
    "resnet18": (128, 224, "SGD", 10),
    "resnet50": (64, 224, "SGD", 10),
    "vit_b_16": (64, 224, "AdamW", 5),
}


def second_rank():
    """Forks one; returns this process's rank, and functions that tell the other and hear from it."""
    down, up = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(down[1])
        return 1, os.fdopen(down[0]), os.fdopen(up[1], "w")
    os.close(down[0])
    return 0, os.fdopen(down[1], "w"), os.fdopen(up[0])


def peer(model_name, batch, side, optimizer_name, fused, ranks, folder, device):
    """Takes steps on request, as train_step.cpp does."""
    rank, first, second = second_rank() if ranks == 2 else (0, None, None)
    import torch
    import torchvision

    torch.set_num_threads(1)
    on_gpu = device == "cuda"
    torch.backends.cudnn.benchmark = on_gpu  # as OpenGpu() in cuda_device.cpp
    torch.backends.cudnn.allow_tf32 = not on_gpu
    shape = {"image_size": side} if model_name.startswith("vit") else {}
    model = getattr(torchvision.models, model_name)(**shape).train()
    images = torch.rand(batch, 3, side, side)
    if model_name.startswith("resnet"):
        model = model.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    model, images, labels = model.to(device), images.to(device), torch.arange(batch).to(device)
    rate = {"lr": 1e-4, "weight_decay": 1e-4, "fused": fused or None}
    optimizer = (torch.optim.SGD(model.parameters(), momentum=0.9, **rate) if optimizer_name == "SGD"
                 else torch.optim.AdamW(model.parameters(), **rate))
    if ranks == 2:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2,
                                             timeout=datetime.timedelta(seconds=60))
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    for line in first if rank == 1 else sys.stdin:
        if ranks == 2 and rank == 0:
            print(line.strip(), file=first, flush=True)
        clock = time.monotonic if on_gpu else time.process_time
        begin = clock()
        for _ in range(int(line)):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            last = loss.item()
            optimizer.step()
        if on_gpu:
            torch.cuda.synchronize()
        seconds = clock() - begin
        if rank == 1:
            print(seconds, file=second, flush=True)
            continue
        if ranks == 2:
            seconds += float(second.readline())
        print(seconds, last, flush=True)


class Stepper:
    """A process that takes steps, with the other rank that it may have started."""

    deadline = 300  # seconds for the steps of one call
    keep_memory = False  # of Python's processes
    device = "cpu"
    started = []

    def __init__(self, command):
        self.command = command
        # As KeepMemory() in train_step.cpp.
        kept = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1), "MALLOC_TOP_PAD_": str(64 << 20)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True,
                                        env=os.environ | (kept if self.keep_memory else {}))
        self.started.append(self)

    def steps(self, count):
        timer = threading.Timer(self.deadline, self.kill)
        timer.start()
        try:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().split()
        except BrokenPipeError:
            answer = []
        finally:
            timer.cancel()
        if not answer:
            raise SystemExit(f"{' '.join(self.command)}: ended, or took no step within {self.deadline} s")
        return float(answer[0]) / count

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{' '.join(self.command)}: does not end") from None
        self.started.remove(self)

    def kill(self):
        # The group is there as long as one of its processes is.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def interval(ratios, rounds=2000):
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def python_stepper(name, arguments, ranks=1, folder=""):
    return Stepper([sys.executable, __file__, "--peer", name, str(ranks), folder, Stepper.device, *arguments])


def faster_optimizer(arguments, count):
    """The name of Python's, and a stepper that uses it."""
    steppers = {name: python_stepper(name, arguments) for name in ("default", "fused")}
    for stepper in steppers.values():
        stepper.steps(3)
    trial = {name: min(stepper.steps(count) for _ in range(3)) for name, stepper in steppers.items()}
    fastest = min(trial, key=trial.get)
    for name, stepper in steppers.items():
        if name != fastest:
            stepper.end()
    return fastest, steppers[fastest]


def in_turn(steppers, pairs, count):
    """CPU seconds per step of each, pair by pair; who begins changes."""
    taken = []
    for pair in range(pairs):
        order = steppers if pair % 2 == 0 else steppers[::-1]
        seconds = {stepper: stepper.steps(count) for stepper in order}
        taken.append([seconds[stepper] for stepper in steppers])
    for stepper in steppers:
        stepper.end()
    return taken


def with_interval(values):
    low, high = interval(values)
    return f"{statistics.median(values):.3f} [{low:.3f}, {high:.3f}]"


def compare(program, model, pairs, side, batch):
    usual_batch, usual_side, optimizer, count = (ON_GPU if Stepper.device == "cuda" else CASES)[model]
    batch, side = batch or usual_batch, side or usual_side
    arguments = [model, str(batch), str(side), optimizer]
    fastest, other = faster_optimizer(arguments, count)
    ours = Stepper([program, *arguments, *(["1", "cuda"] if Stepper.device == "cuda" else [])])
    ours.steps(3)
    seconds = in_turn([ours, other], pairs, count)
    ratios = [a / b for a, b in seconds]
    own, theirs = statistics.median(s[0] for s in seconds), statistics.median(s[1] for s in seconds)
    print(f"train_step {model} batch {batch} side {side} {optimizer}: ours / Python ({fastest} optimiser) = "
          f"{with_interval(ratios)} over {pairs} pairs; {own:.4g} and {theirs:.4g} "
          f"{'s' if Stepper.device == 'cuda' else 'CPU s'}", flush=True)
    return {"model": model, "batch": batch, "side": side, "optimizer": optimizer, "device": Stepper.device,
            "pairs": pairs, "ratio": statistics.median(ratios), "interval": interval(ratios),
            "seconds": own, "pythonSeconds": theirs, "pythonOptimizer": fastest}


def compare_ddp(program, model, pairs, side, batch):
    usual_batch, usual_side, optimizer, count = CASES[model]
    batch, side = batch or usual_batch, side or usual_side
    arguments = [model, str(batch), str(side), optimizer]
    fastest, python_one = faster_optimizer(arguments, count)
    with tempfile.TemporaryDirectory(prefix="train-step-") as folder:
        steppers = [Stepper([program, *arguments]), Stepper([program, *arguments, "2"]),
                    python_one, python_stepper(fastest, arguments, 2, folder)]
        for stepper in steppers:
            stepper.steps(3)
        seconds = in_turn(steppers, pairs, count)
    print(f"train_step {model} batch {batch} side {side} {optimizer}, 2 ranks: ours / Python ({fastest} optimiser) = "
          f"{with_interval([s[1] / s[3] for s in seconds])} over {pairs} pairs; "
          f"{statistics.median(s[1] for s in seconds):.3f} and {statistics.median(s[3] for s in seconds):.3f} CPU s; "
          f"DDP costs each rank {with_interval([s[1] / 2 - s[0] for s in seconds])} CPU s here and "
          f"{with_interval([s[3] / 2 - s[2] for s in seconds])} in Python", flush=True)


def main():
    if sys.argv[1:2] == ["--peer"]:
        implementation, ranks, folder, device, model, batch, side, optimizer = sys.argv[2:]
        return peer(model, int(batch), int(side), optimizer, implementation == "fused", int(ranks), folder, device)
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {' '.join(CASES)}")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--side", type=int, help="of the pictures; default: 224")
    parser.add_argument("--batch", type=int, help="default: another for each model")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--json", help="file for the figures, of one rank")
    parser.add_argument("--ranks", type=int, default=1, choices=(1, 2))
    parser.add_argument("--keep-memory", action="store_true", help="Python's allocator too keeps what is freed")
    parser.add_argument("--deadline", type=float, default=Stepper.deadline)
    # Options may stand between the program and the models.
    arguments = parser.parse_intermixed_args()
    if unknown := set(arguments.models) - set(CASES):
        parser.error(f"no model {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    if arguments.ranks > 1 and (arguments.device == "cuda" or arguments.json):
        parser.error("--device cuda and --json are for one rank")
    Stepper.deadline = arguments.deadline
    Stepper.device = arguments.device
    Stepper.keep_memory = arguments.keep_memory
    run = compare if arguments.ranks == 1 else compare_ddp
    try:
        figures = [run(arguments.program, model, arguments.pairs, arguments.side, arguments.batch)
                   for model in arguments.models or CASES]
    finally:
        for stepper in Stepper.started:
            stepper.kill()
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(figures, file)


if __name__ == "__main__":
    sys.exit(main())
