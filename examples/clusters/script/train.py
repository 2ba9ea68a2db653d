"""Trains resnet50 on the batches of a job: on the GPU of each rank or, where there is none, on the CPU.

job.yaml runs it; README.md has the commands.
"""

import os
import pathlib

import hetero
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel

on_gpu = torch.cuda.is_available()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
# The addresses are in the environment, as from torchrun.
dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)

stream = hetero.Stream(device=device)
torch.manual_seed(stream.seed)
model = torchvision.models.resnet50(num_classes=stream.classes).to(device)
model = DistributedDataParallel(model, device_ids=[device] if on_gpu else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

# training.checkpoint.uri: on the volume that all pods of the role mount.
checkpoint = pathlib.Path(stream.checkpoint_uri.removeprefix("file://")) / "checkpoint.pt"
if checkpoint.exists():
    saved = torch.load(checkpoint, map_location=device, weights_only=True)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    stream.load_state_dict(saved["stream"])
print(f"rank {stream.rank} of {stream.world_size} begins at step {stream.step} on {device}", flush=True)


def save(position):
    if dist.get_rank() == 0:
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "stream": position}
        torch.save(state, checkpoint.with_suffix(".new"))
        checkpoint.with_suffix(".new").rename(checkpoint)  # whole, or not there


for epoch in stream.epochs():
    for images, labels in epoch:
        with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu):
            loss = F.cross_entropy(model(images), labels) * stream.weight
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if stream.should_checkpoint():  # the same answer on every rank
            save(stream.state_dict())
    stream.report(loss=loss)

dist.destroy_process_group()
