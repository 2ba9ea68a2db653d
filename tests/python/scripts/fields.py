"""Takes every batch, whatever it has beside the pictures, and writes down what the digest is made of.

fields.py [--class] [--pictures]: samples are a picture and its class alone; the pictures are written down, too.
"""

import sys

import hetero
import numpy as np

from proof.digest import crc32c
from proof.record import Journal


def checked(batch):
    """The bytes that the checksum of each sample is of: of every field, in the order of the names, its heading and its
    numbers."""
    if "--class" in sys.argv:
        return np.asarray(batch["image"]).reshape(len(batch.ids), -1)
    rows = []
    for name in sorted(batch.keys()):
        array = np.ascontiguousarray(np.asarray(batch[name]))
        count = len(array)
        heading = f"{name} {array.dtype} [{','.join(map(str, array.shape[1:]))}]\n".encode()
        rows.append(np.broadcast_to(np.frombuffer(heading, np.uint8), (count, len(heading))))
        rows.append(np.frombuffer(array.tobytes(), np.uint8).reshape(count, array.nbytes // count))
    return np.concatenate(rows, axis=1)


stream = hetero.Stream(raw=True)
journal = Journal("fields", stream.rank)
pictures = "--pictures" in sys.argv
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
