"""What `--dump-stream` of a C++ job wrote down: the batches that its trainers consumed."""

import re

import safetensors.numpy

from proof.digest import crc32c
from proof.record import pixels_of

_NAME = re.compile(r"rank(\d+)-step(\d+)\.safetensors")


def read_dump(folder, ranks, steps_per_epoch):
    """Per rank the entries as `entry_of` makes them of a script's batches."""
    entries = [[] for _ in range(ranks)]
    for path in sorted(folder.glob("*.safetensors")):
        rank, step = map(int, _NAME.fullmatch(path.name).groups())
        tensors = safetensors.numpy.load_file(path)
        slots = tensors["slots"].tolist()
        entries[rank].append(
            {
                "epoch": step // steps_per_epoch,
                "step": step,
                "slot": slots[0],
                "ids": tensors["sample_ids"].tolist(),
                "labels": tensors["labels"].tolist(),
                "crcs": crc32c(pixels_of(tensors["images"])).tolist(),
            }
        )
        assert slots == list(range(slots[0], slots[0] + len(slots)))
    return entries
