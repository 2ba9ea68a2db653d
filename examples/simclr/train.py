"""SimCLR (Chen et al., 2020): two views of a picture attract each other, all others of the step repel.

hetero-runtime local job.yaml      # two ranks and two CPU workers, which make the views
python train.py                    # by itself: one rank, and CPU workers that end with it
"""

import os
import pathlib

import hetero
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel

TEMPERATURE = 0.2


class Encoder(nn.Module):
    """Features, and behind them what the loss compares."""

    def __init__(self):
        super().__init__()
        self.backbone = torchvision.models.resnet18(num_classes=128)
        self.backbone.fc = nn.Identity()
        self.projection = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, images):
        return self.projection(self.backbone(images))


def nt_xent(projected):
    """Of [2n, d]: the first views of this rank's n pictures, then the second ones in the same order."""
    mine = F.normalize(projected, dim=1)
    every = torch.cat(all_gather(mine))  # of all ranks, with their gradients
    place = dist.get_rank() * len(mine) + torch.arange(len(mine))
    logits = mine @ every.T / TEMPERATURE
    logits[torch.arange(len(mine)), place] = float("-inf")  # itself
    other = dist.get_rank() * len(mine) + (torch.arange(len(mine)) + len(mine) // 2) % len(mine)
    return F.cross_entropy(logits, other)


@torch.no_grad()
def neighbours_of_the_same_class(backbone, stream):
    """How often the picture that is nearest among the rank's validation pictures is of the same class."""
    backbone.eval()
    features, labels = [], []
    for images, classes in stream.validation():  # one view, and no random numbers
        features.append(F.normalize(backbone(images), dim=1))
        labels.append(classes)
    backbone.train()
    similar, labels = torch.cat(features) @ torch.cat(features).T, torch.cat(labels)
    nearest = similar.fill_diagonal_(-1).argmax(1)
    right = torch.tensor([float((labels[nearest] == labels).sum()), float(len(labels))])
    dist.all_reduce(right)
    return right[0] / right[1]


alone = {} if "RANK" in os.environ else {"init_method": "tcp://127.0.0.1:0", "rank": 0, "world_size": 1}
dist.init_process_group("gloo", **alone)  # "nccl" with GPUs
torch.manual_seed(7)
model = DistributedDataParallel(Encoder())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0001)

stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))
for epoch in stream.epochs():
    for images, _ in epoch:  # [n, 2, 3, 32, 32]; the classes are not looked at
        views = images.transpose(0, 1).flatten(0, 1)
        loss = nt_xent(model(views))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = neighbours_of_the_same_class(model.module.backbone, stream)
    stream.report(loss=loss, accuracy=accuracy)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, nearest of the same class {accuracy:.3f}", flush=True)

dist.destroy_process_group()
