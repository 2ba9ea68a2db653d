"""Which marks a picture holds, several at once: float labels of shape [4], one sigmoid each.

hetero-runtime local job.yaml      # two ranks and two CPU workers
python train.py                    # by itself: one rank, and CPU workers that end with it
"""

import os
import pathlib

import hetero
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

alone = {} if "RANK" in os.environ else {"init_method": "tcp://127.0.0.1:0", "rank": 0, "world_size": 1}
dist.init_process_group("gloo", **alone)  # "nccl" with GPUs
torch.manual_seed(7)
network = nn.Sequential(
    *(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU()),
    *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
    *(nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU()),
    *(nn.Flatten(), nn.Linear(64 * 4 * 4, 4)),
)
model = DistributedDataParallel(network)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003)

stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))
for epoch in stream.epochs():
    for images, marks in epoch:  # float32 [n, 3, 32, 32] and [n, 4]
        loss = F.binary_cross_entropy_with_logits(model(images), marks) * stream.weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    right = torch.zeros(3)  # marks, whole pictures, pictures seen
    with torch.no_grad():
        for images, marks in stream.validation():
            same = (network(images) > 0) == (marks > 0.5)
            right += torch.tensor([same.float().mean(1).sum(), same.all(1).sum(), len(marks)])
    dist.all_reduce(right)
    accuracy, whole = right[0] / right[2], right[1] / right[2]
    stream.report(loss=loss, accuracy=accuracy, allMarksRight=whole)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, marks right {accuracy:.3f}, pictures {whole:.3f}", flush=True)

dist.destroy_process_group()
