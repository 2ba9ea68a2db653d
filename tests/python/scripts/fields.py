"""Takes every batch, whatever it has beside the pictures, and writes down what the digest is made of."""

import hetero
import numpy as np

from proof.digest import crc32c
from proof.record import Journal, checked_bytes

stream = hetero.Stream(raw=True)
journal = Journal("fields", stream.rank)
for epoch in stream.epochs():
    for batch in epoch:
        labels = np.asarray(batch["label"]) if "label" in batch.keys() else None
        journal.write(
            epoch=batch.epoch,
            step=batch.step,
            slot=batch.place.first_slot,
            ids=np.asarray(batch.ids).tolist(),
            crcs=crc32c(checked_bytes(batch)).tolist() if len(batch.ids) else [],
            labels=None if labels is None else labels.tolist(),
            dtype=None if labels is None else str(labels.dtype),
        )
stream.close()
