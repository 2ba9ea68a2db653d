"""Trains on a device and keeps what it received there, read back only at the end.

    on_gpu.py DEVICE [--raw]

On a GPU the kernels of a step are queued long before they run: a batch whose memory were used again too early, by the
agent, by the copying stream or by PyTorch's allocator, would be found changed.
"""

import json
import os
import pathlib
import sys
import zlib

import hetero
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from proof.record import entry_of

place, raw = torch.device(sys.argv[1]), "--raw" in sys.argv
on_gpu = place.type == "cuda"
dist.init_process_group("nccl" if on_gpu else "gloo", device_id=place if on_gpu else None)
stream = hetero.Stream(device=str(place), raw=raw)
side = int(os.environ["PROOF_SIDE"])
torch.manual_seed(3)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * (side - 2) ** 2, 4)).to(place)
model = DistributedDataParallel(model, device_ids=[place.index] if on_gpu else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
busy = torch.rand(2048, 2048, device=place) if on_gpu else None
kept, losses = [], []
for epoch in stream.epochs():
    for batch in epoch:
        images, labels = batch
        assert images.device == labels.device == place, (images.device, labels.device)
        if on_gpu:
            for _ in range(20):  # some milliseconds, so that the host is ahead
                busy = (busy @ busy).clamp(0, 1)
        pixels = images.permute(0, 3, 1, 2).float() / 255 if raw else images
        loss = nn.functional.cross_entropy(model(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        kept.append((batch.place, batch.epoch, batch.step, images.clone(), labels.clone(), batch.ids.clone()))
        del images, labels, batch, pixels


class Kept:
    def __init__(self, place, epoch, step, images, labels, ids):
        self.place, self.epoch, self.step, self.ids = place, epoch, step, ids.cpu()
        self.pair = images.cpu(), labels.cpu()

    def __iter__(self):
        return iter(self.pair)


scale, offset = [1 / (255 * 0.5)] * 3, [-1.0] * 3  # of Normalize by 0.5 and 0.5
entries, crcs = [], []
for parts in kept:
    batch = Kept(*parts)
    entries.append(entry_of(batch, None if raw else (scale, offset)))
    crcs.append(zlib.crc32(np.ascontiguousarray(batch.pair[0])))
result = {"entries": entries, "crcs": crcs, "losses": torch.stack(losses).tolist(), "seed": stream.seed}
(pathlib.Path(os.environ["PROOF_RECORDS"]) / f"result-{stream.rank}").write_text(json.dumps(result))
dist.destroy_process_group()
