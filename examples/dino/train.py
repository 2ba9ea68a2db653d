"""DINO (Caron et al., 2021) in short: a student that sees small crops agrees with a teacher that sees large ones.

hetero-runtime local job.yaml      # two ranks and two CPU workers, which make the crops
python train.py                    # by itself: one rank, and CPU workers that end with it
"""

import copy
import os
import pathlib

import hetero
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.nn.parallel import DistributedDataParallel

PROTOTYPES = 256
STUDENT_TEMPERATURE, TEACHER_TEMPERATURE = 0.1, 0.04
TEACHER_MOMENTUM, CENTRE_MOMENTUM = 0.99, 0.9


class Network(nn.Module):
    """From crops of several sizes, each [n, views, 3, H, W], to [all views, n, PROTOTYPES]."""

    def __init__(self):
        super().__init__()
        self.backbone = torchvision.models.resnet18(num_classes=256)  # takes any size: it pools at the end
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(256, PROTOTYPES, bias=False))

    def forward(self, *crops):
        found = []
        for pictures in crops:
            features = self.backbone(pictures.transpose(0, 1).flatten(0, 1))
            found.append(self.last(F.normalize(features, dim=1)).unflatten(0, (pictures.shape[1], -1)))
        return torch.cat(found)


def loss_of(student, teacher, centre):
    """Cross entropy of each student's view with each teacher's other one."""
    targets = F.softmax((teacher - centre) / TEACHER_TEMPERATURE, dim=-1)
    found = F.log_softmax(student / STUDENT_TEMPERATURE, dim=-1)
    pairs = [(t, s) for t in range(len(targets)) for s in range(len(found)) if s != t]
    return -sum((targets[t] * found[s]).sum(-1).mean() for t, s in pairs) / len(pairs)


alone = {} if "RANK" in os.environ else {"init_method": "tcp://127.0.0.1:0", "rank": 0, "world_size": 1}
dist.init_process_group("gloo", **alone)  # "nccl" with GPUs
torch.manual_seed(7)
student = DistributedDataParallel(Network())
teacher = copy.deepcopy(student.module).requires_grad_(False)
optimizer = torch.optim.AdamW(student.parameters(), lr=0.0005, weight_decay=0.04)
centre = torch.zeros(PROTOTYPES)

stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))
for epoch in stream.epochs():
    for batch in epoch:
        large, small = batch["image"], batch["local"]  # [n, 2, 3, 32, 32] and [n, 4, 3, 16, 16]
        with torch.no_grad():
            wanted = teacher(large)
        loss = loss_of(student(large, small), wanted, centre)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mine, of_student in zip(teacher.parameters(), student.module.parameters(), strict=True):
                mine.lerp_(of_student, 1 - TEACHER_MOMENTUM)
            mean = wanted.mean((0, 1))
            dist.all_reduce(mean)
            centre.lerp_(mean / dist.get_world_size(), 1 - CENTRE_MOMENTUM)
    stream.report(loss=loss)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}", flush=True)

dist.destroy_process_group()
