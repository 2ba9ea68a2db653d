"""Keeps every raw picture and mask that it receives, by epoch and sample, and what the digest is made of."""

import os
import pathlib

import hetero
import numpy as np

from proof.digest import crc32c
from proof.record import Journal, checked_bytes

NAME = os.environ.get("MASK_NAME", "mask")

stream = hetero.Stream(raw=True)
journal = Journal("fields", stream.rank)
kept = {}
for epoch in stream.epochs():
    for batch in epoch:
        images, masks = np.asarray(batch["image"]), np.asarray(batch[NAME])
        assert masks.dtype == np.uint8 and masks.shape == images.shape[:3], masks.shape
        labels = np.asarray(batch["label"]).tolist() if "label" in batch.keys() else None
        for at, sample in enumerate(np.asarray(batch.ids).tolist()):
            kept[f"image-{batch.epoch}-{sample}"] = images[at].copy()
            kept[f"mask-{batch.epoch}-{sample}"] = masks[at].copy()
        journal.write(
            epoch=batch.epoch,
            step=batch.step,
            slot=batch.place.first_slot,
            ids=np.asarray(batch.ids).tolist(),
            labels=labels,
            keys=list(batch.keys()),
            crcs=crc32c(checked_bytes(batch)).tolist() if len(batch.ids) else [],
        )
    for batch in stream.validation():
        for at, sample in enumerate(np.asarray(batch.ids).tolist()):
            kept[f"image-val-{sample}"] = np.asarray(batch["image"])[at].copy()
            kept[f"mask-val-{sample}"] = np.asarray(batch[NAME])[at].copy()
np.savez(pathlib.Path(os.environ["PROOF_RECORDS"]) / f"kept-{stream.rank}.npz", **kept)
stream.close()
