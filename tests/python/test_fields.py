"""Samples whose label is no class: a script gets the numbers as they are, and the job's digest covers them."""

import json
import struct
import subprocess

import numpy as np

from proof.job import RUNTIME, manifest, python
from proof.record import digest_of


def entries_of(start, **changes):
    """All batches that both scripts wrote down; their digest is the job's."""
    run = start(manifest(python("fields.py"), training__epochs=2, **changes))
    report = run.succeed()
    entries = sum(run.journal("fields"), [])
    assert sum(len(entry["ids"]) for entry in entries) == report["samplesConsumed"]
    assert digest_of(report["seed"], entries) == report["streamDigest"]
    entries[5]["crcs"][0] ^= 1
    assert digest_of(report["seed"], entries) != report["streamDigest"]
    return entries


def test_floats(start):
    entries = entries_of(start, dataset__label={"type": "Float32", "shape": [2, 2]})
    for entry in entries:
        assert entry["dtype"] == "float32"
        for sample, label in zip(entry["ids"], entry["labels"], strict=True):
            kind = sample % 4  # of four classes
            assert label == [[kind & 1, kind >> 1], [0, 0]]


def test_integers_of_an_idx_file(start, tmp_path):
    folder = tmp_path / "idx"
    folder.mkdir()
    count, side = 90, 16
    numbers = np.random.default_rng(1).integers(-(1 << 15), 1 << 15, (count, 3)).astype(">i2")
    (folder / "train-images-idx3-ubyte").write_bytes(
        struct.pack(">IIII", 0x803, count, side, side) + bytes(range(256)) * count
    )
    (folder / "train-corners-idx2-short").write_bytes(struct.pack(">III", 0xB02, count, 3) + numbers.tobytes())
    entries = entries_of(
        start,
        dataset={
            "uri": f"file://{folder}",
            "format": "IDX",
            "label": {"type": "Int64", "shape": [3], "field": "corners"},
        },
    )
    for entry in entries:
        assert entry["dtype"] == "int64"
        assert entry["labels"] == [numbers[sample].tolist() for sample in entry["ids"]]


def test_no_labels(start, tmp_path):
    """Every picture of a folder, in folders or not."""
    folder = tmp_path / "pictures"
    subprocess.run(
        [RUNTIME, "make-dataset", "--format", "ImageFolder", "--classes", "4", "--samples", "70"]
        + ["--validation-samples", "8", "--size", "32", "--seed", "7", folder],
        check=True,
        capture_output=True,
    )
    pictures = folder / "train"
    some = next(pictures.glob("*/*"))
    some.rename(pictures / f"first{some.suffix}")
    entries = entries_of(
        start,
        dataset={"uri": f"file://{pictures}", "format": "ImageFolder", "label": {"type": "None"}},
        pipeline=[{"op": "Decode"}, {"op": "RandomResizedCrop", "size": {"height": 12, "width": 12}}],
    )
    assert all(entry["labels"] is None for entry in entries)
    assert {sample for entry in entries for sample in entry["ids"]} == set(range(70))


def test_numbers_of_a_metadata_file(start, tmp_path):
    folder = tmp_path / "pictures"
    subprocess.run(
        [RUNTIME, "make-dataset", "--format", "ImageFolder", "--classes", "2", "--samples", "40"]
        + ["--validation-samples", "8", "--size", "32", "--seed", "7", folder],
        check=True,
        capture_output=True,
    )
    pictures = folder / "train"
    paths = sorted(path.relative_to(pictures) for path in pictures.glob("*/*"))
    with open(pictures / "metadata.jsonl", "w") as file:
        for place, path in reversed(list(enumerate(paths))):
            print(json.dumps({"file_name": str(path), "price": place / 8}), file=file)
    entries = entries_of(
        start,
        dataset={
            "uri": f"file://{pictures}",
            "format": "ImageFolder",
            "label": {"type": "Float32", "field": "price"},
        },
        pipeline=[{"op": "Decode"}, {"op": "RandomResizedCrop", "size": {"height": 12, "width": 12}}],
    )
    for entry in entries:
        assert entry["labels"] == [sample / 8 for sample in entry["ids"]]
