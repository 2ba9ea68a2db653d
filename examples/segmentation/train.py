"""Learns which pixel is of which shape; CPU workers read and augment pictures and masks as job.yaml says.

hetero-runtime local job.yaml      # one rank and two CPU workers
python train.py                    # by itself: CPU workers that end with it
"""

import pathlib

import hetero
import torch
import torch.nn.functional as F
from torch import nn

CLASSES, IGNORED = 3, 255  # job.yaml: dataset.mask.fill


def convolutions(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class SmallUNet(nn.Module):
    """Two steps down and two up, each joined with what was there before (Ronneberger et al., 2015)."""

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([convolutions(3, 12), convolutions(12, 24)])
        self.bottom = convolutions(24, 48)
        self.up = nn.ModuleList([convolutions(48 + 24, 24), convolutions(24 + 12, 12)])
        self.classes = nn.Conv2d(12, CLASSES, 1)

    def forward(self, x):
        before = []
        for layer in self.down:
            before.append(layer(x))
            x = F.max_pool2d(before[-1], 2)
        x = self.bottom(x)
        for layer in self.up:
            x = layer(torch.cat([F.interpolate(x, scale_factor=2.0), before.pop()], dim=1))
        return self.classes(x)


def mean_iou(model, batches):
    """Over all pixels but ignored ones: what both say, divided by what either says, for each class."""
    seen = torch.zeros(CLASSES * CLASSES)
    for images, masks in batches:
        truth = masks.long()
        pairs = (truth * CLASSES + model(images).argmax(1))[truth != IGNORED]
        seen += torch.bincount(pairs, minlength=CLASSES * CLASSES)
    table = seen.reshape(CLASSES, CLASSES)
    both = table.diagonal()
    return (both / (table.sum(0) + table.sum(1) - both)).nanmean().item()


torch.manual_seed(7)
model = SmallUNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.6)  # a step for each epoch
stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))

for epoch in stream.epochs():
    model.train()
    for images, masks in epoch:  # float32 [N, 3, H, W] and uint8 [N, H, W]
        loss = F.cross_entropy(model(images), masks.long(), ignore_index=IGNORED)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()

    model.eval()
    with torch.no_grad():
        score = mean_iou(model, stream.validation())
    stream.report(loss=loss, meanIoU=score)
    print(f"epoch {epoch}: loss {loss.item():.3f}, mean IoU {score:.3f}", flush=True)
