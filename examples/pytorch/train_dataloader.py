"""Trains resnet18 on a folder of pictures, with torch's DataLoader.

torchrun --nproc-per-node 2 train_dataloader.py
"""

import argparse
import pathlib

import torch
import torch.distributed as dist
import torch.nn.functional as F
import torchvision
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision import transforms

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=pathlib.Path, default="/tmp/pictures")
parser.add_argument("--checkpoint", type=pathlib.Path, default="/tmp/pictures/dataloader.pt")
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()

dist.init_process_group("gloo")  # "nccl" with GPUs
torch.manual_seed(7)
model = DistributedDataParallel(torchvision.models.resnet18(num_classes=10))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)

normalize = [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)]
augment = [
    transforms.RandomResizedCrop(32, scale=(0.6, 1.0), ratio=(0.8, 1.25)),
    transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(brightness=0.1),
]
pictures = torchvision.datasets.ImageFolder(args.data / "train", transforms.Compose(augment + normalize))
sampler = DistributedSampler(pictures, seed=7)
loader = DataLoader(pictures, batch_size=32, sampler=sampler, num_workers=2)
held_out = torchvision.datasets.ImageFolder(args.data / "val", transforms.Compose(normalize))
validation = DataLoader(held_out, batch_size=32, sampler=DistributedSampler(held_out, shuffle=False))
first = 0

if args.checkpoint.exists():
    saved = torch.load(args.checkpoint, weights_only=True)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["epoch"]


def save(**position):
    if dist.get_rank() == 0:
        state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), **position}
        torch.save(state, args.checkpoint.with_suffix(".new"))
        args.checkpoint.with_suffix(".new").rename(args.checkpoint)


for epoch in range(first, args.epochs):
    sampler.set_epoch(epoch)
    model.train()
    for images, labels in loader:
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save(epoch=epoch + 1)

    model.eval()
    right = torch.zeros(2)
    with torch.no_grad():
        for images, labels in validation:
            right += torch.tensor([(model.module(images).argmax(1) == labels).sum(), len(labels)])
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right[0] / right[1]:.3f}", flush=True)

dist.destroy_process_group()
