"""Ordinary PyTorch: a torchvision model under DistributedDataParallel over Gloo with a checkpoint of its own.

ddp.py [--model resnet18] [--weights FILE] [--learning-rate 0.05] [--float64] [--crash STEP:RANK ...] [--pause SECONDS]
"""

import argparse
import os
import pathlib
import time

import hetero
import safetensors.torch
import torch
import torch.distributed as dist
import torchvision
from torch import nn

from proof.record import Journal, entry_of

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="mlp")
parser.add_argument("--weights")
parser.add_argument("--learning-rate", type=float, default=0.05)
parser.add_argument("--float64", action="store_true")
parser.add_argument("--crash", nargs="*", default=[])
parser.add_argument("--pause", type=float, default=0.0)
arguments = parser.parse_args()


def build(stream):
    if arguments.model == "resnet18":
        return torchvision.models.resnet18(num_classes=stream.classes)
    values = 3 * 12 * 12
    return nn.Sequential(
        nn.Flatten(), nn.Linear(values, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, stream.classes)
    )


dist.init_process_group("gloo")
torch.manual_seed(5)
stream = hetero.Stream()
records = pathlib.Path(os.environ["PROOF_RECORDS"])
batches, states, starts, losses = (Journal(name, stream.rank) for name in ("batches", "states", "starts", "losses"))
crashes = {int(step) for step, rank in (word.split(":") for word in arguments.crash) if int(rank) == stream.rank}
means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
conversion = [
    [1 / (255 * deviation) for deviation in deviations],
    [-mean / deviation for mean, deviation in zip(means, deviations, strict=True)],
]

net = build(stream)
if arguments.weights:
    net.load_state_dict(safetensors.torch.load_file(arguments.weights))
dtype = torch.float64 if arguments.float64 else torch.float32
net.to(dtype)
model = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=arguments.learning_rate, momentum=0.9)
trained = []
checkpoint = records / "checkpoint.pt"
if checkpoint.exists():
    saved = torch.load(checkpoint, weights_only=True)
    net.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    stream.load_state_dict(saved["stream"])
    trained = saved["trained"][stream.rank]
    # Each rank has batch norm's running statistics of its own, which DDP takes from rank 0 at the next forward.
starts.write(restart=stream.restart_count, step=stream.step, pid=os.getpid())
for epoch in stream.epochs():
    for batch in epoch:
        images, labels = batch
        entry = entry_of(batch, conversion)
        batches.write(restart=stream.restart_count, **entry)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(dtype)), labels) * batch.weight
        loss.backward()
        optimizer.step()
        losses.write(step=batch.step, loss=loss.item())
        trained.append(entry)
        stream.report(loss=loss)
        if stream.should_checkpoint():
            state = stream.state_dict()
            states.write(**state)
            everyone = [None] * stream.world_size
            dist.all_gather_object(everyone, trained)
            if stream.rank == 0:
                torch.save(
                    {
                        "model": net.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "stream": state,
                        "trained": everyone,
                    },
                    records / "temporary",
                )
                (records / "temporary").rename(checkpoint)
        if batch.step in crashes:
            mark = records / f"crashed-{batch.step}-{stream.rank}"
            if not mark.exists():
                mark.touch()
                raise RuntimeError(f"the script's own fault at step {batch.step}")
        time.sleep(arguments.pause)
final = Journal("trained", stream.rank, final=True)
for entry in trained:
    final.write(**entry)
if stream.rank == 0:
    safetensors.torch.save_file(net.state_dict(), records / "model.safetensors")
stream.close()
dist.destroy_process_group()
