"""Takes every batch, whatever it has beside the pictures, and writes down what the digest is made of.

fields.py [--class] [--pictures]: samples are a picture and its class alone; the pictures are written down, too.
"""

import sys

import hetero
import numpy as np

from proof.digest import crc32c
from proof.record import Journal, checked_bytes, pixels_of

stream = hetero.Stream(raw=True)
journal = Journal("fields", stream.rank)
pictures = "--pictures" in sys.argv


def checked(batch):
    return pixels_of(batch["image"]) if "--class" in sys.argv else checked_bytes(batch)


for epoch in stream.epochs():
    for batch in epoch:
        labels = np.asarray(batch["label"]) if "label" in batch.keys() else None
        journal.write(
            epoch=batch.epoch,
            step=batch.step,
            slot=batch.place.first_slot,
            ids=np.asarray(batch.ids).tolist(),
            crcs=crc32c(checked(batch)).tolist() if len(batch.ids) else [],
            labels=None if labels is None else labels.tolist(),
            dtype=None if labels is None else str(labels.dtype),
            names=list(batch.keys()),
            pictures={name: np.asarray(batch[name]).tolist() for name in stream.views} if pictures else None,
        )
stream.close()
