"""Where the middle of a disc is: float labels of shape [2], as shares of the picture's side.

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
    *(nn.Flatten(), nn.Linear(32 * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 2)),
)
model = DistributedDataParallel(network)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.002)

stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))
for epoch in stream.epochs():
    for images, centers in epoch:  # float32 [n, 3, 32, 32] and [n, 2]
        loss = F.mse_loss(model(images), centers) * stream.weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    off = torch.zeros(2)  # distances, pictures seen
    with torch.no_grad():
        for images, centers in stream.validation():
            off += torch.tensor([(network(images) - centers).norm(dim=1).sum(), len(centers)])
    dist.all_reduce(off)
    pixels = 32 * off[0] / off[1]
    stream.report(loss=loss, pixelsOff=pixels)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.4f}, {pixels:.2f} pixels off", flush=True)

dist.destroy_process_group()
