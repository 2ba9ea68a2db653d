"""Trains resnet18 on a folder of pictures, which CPU workers read and augment as job.yaml says.

hetero-runtime local job.yaml      # two ranks and two CPU workers
python train.py                    # by itself: one rank, and CPU workers that end with it
"""

import argparse
import os
import pathlib

import hetero
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", type=pathlib.Path, default="/tmp/pictures/hetero.pt")
args = parser.parse_args()

alone = {} if "RANK" in os.environ else {"init_method": "tcp://127.0.0.1:0", "rank": 0, "world_size": 1}
dist.init_process_group("gloo", **alone)  # "nccl" with GPUs
torch.manual_seed(7)
model = DistributedDataParallel(torchvision.models.resnet18(num_classes=10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)

stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))

if args.checkpoint.exists():
    saved = torch.load(args.checkpoint, weights_only=True)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    stream.load_state_dict(saved["stream"])


def save(**position):
    if dist.get_rank() == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), **position}
        torch.save(state, args.checkpoint.with_suffix(".new"))
        args.checkpoint.with_suffix(".new").rename(args.checkpoint)


for epoch in stream.epochs():
    model.train()
    for images, labels in epoch:
        loss = F.cross_entropy(model(images), labels) * stream.weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if stream.should_checkpoint():
            save(stream=stream.state_dict())

    model.eval()
    right = torch.zeros(2)
    with torch.no_grad():
        for images, labels in stream.validation():
            right += torch.tensor([(model.module(images).argmax(1) == labels).sum(), len(labels)])
    dist.all_reduce(right)
    stream.report(loss=loss, accuracy=right[0] / right[1])
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right[0] / right[1]:.3f}", flush=True)

dist.destroy_process_group()
