"""What a script keeps of the batches it received; also imported by the scripts themselves."""

import json
import os
import pathlib

import numpy as np

from proof.digest import crc32c, stream_digest


def pixels_of(images, conversion=None):
    """uint8 [n, bytes] of a batch's pictures, as the CPU workers made them: from raw bytes [n, H, W, C], or back from
    converted [n, C, H, W]."""
    array = np.asarray(images)
    if array.dtype != np.uint8:
        array = np.moveaxis(array, 1, 3)
        scale, offset = (np.asarray(numbers, dtype=np.float64) for numbers in conversion)
        exact = (array.astype(np.float64) - offset) / scale
        array = np.rint(exact)
        assert np.abs(exact - array).max(initial=0) < 0.01, "these are no converted pictures"
        array = array.astype(np.uint8)
    return array.reshape(len(array), int(np.prod(array.shape[1:])))


def entry_of(batch, conversion=None):
    """One batch as plain numbers: place, ids, labels and the CRC of each picture."""
    images, labels = batch
    return {
        "epoch": batch.epoch,
        "step": batch.step,
        "slot": batch.place.first_slot,
        "ids": np.asarray(batch.ids).tolist(),
        "labels": np.asarray(labels).tolist(),
        "crcs": crc32c(pixels_of(images, conversion)).tolist(),
    }


def checked_bytes(batch):
    """The bytes that the checksum of each sample is of: of every field, in the order of the names, its heading and its
    numbers."""
    rows = []
    for name in sorted(batch.keys()):
        array = np.ascontiguousarray(np.asarray(batch[name]))
        count = len(array)
        heading = f"{name} {array.dtype} [{','.join(map(str, array.shape[1:]))}]\n".encode()
        rows.append(np.broadcast_to(np.frombuffer(heading, np.uint8), (count, len(heading))))
        rows.append(np.frombuffer(array.tobytes(), np.uint8).reshape(count, array.nbytes // count))
    return np.concatenate(rows, axis=1)


def digest_of(seed, entries):
    return stream_digest(
        seed,
        (
            (entry["epoch"], entry["step"], entry["slot"] + at, sample, crc)
            for entry in entries
            for at, (sample, crc) in enumerate(zip(entry["ids"], entry["crcs"], strict=True))
        ),
    )


class Journal:
    """Lines of JSON that outlive a killed script: one file per rank and name, in the folder PROOF_RECORDS.

    `final`: what a script says at its end, which it may reach again when another rank's has failed.
    """

    def __init__(self, name, rank, final=False):
        self._file = os.open(
            pathlib.Path(os.environ["PROOF_RECORDS"]) / f"{name}-{rank}.jsonl",
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if final else 0),
            0o644,
        )

    def write(self, **entry):
        os.write(self._file, (json.dumps(entry) + "\n").encode())


def read_journal(folder, name, rank):
    path = pathlib.Path(folder) / f"{name}-{rank}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
