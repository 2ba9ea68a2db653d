"""Several views of a sample: each with the random numbers that the documentation names, whoever makes it."""

import json
import struct
import subprocess

import numpy as np
import pytest

from proof.job import RUNTIME, manifest, python
from proof.record import digest_of

WORKERS = (0, 1, 3)  # 0: the trainers' own cores
SIDE = 16


def philox(counter, key):
    """Philox4x32-10, from the paper."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [
            second >> 32 ^ counter[1] ^ key[0],
            second & 0xFFFFFFFF,
            first >> 32 ^ counter[3] ^ key[1],
            first & 0xFFFFFFFF,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def chance(seed, epoch, sample, position, view):
    """The first number in [0, 1) of an operator for a view, as docs/manifest.md has its key."""
    words = philox([0, sample, view << 6 | position << 16, epoch], [seed & 0xFFFFFFFF, seed >> 32])
    return ((words[0] >> 5) * (1 << 26) + (words[1] >> 6)) / (1 << 53)


def run(start, script, **changes):
    """Digest and batches over 0, 1 and 3 CPU workers, which have to be the same."""
    results = []
    for workers in WORKERS:
        job = start(manifest(script, training__epochs=2, roles__cpu__replicas=workers, **changes))
        report = job.succeed()
        entries = sum(job.journal("fields"), [])
        assert sum(len(entry["ids"]) for entry in entries) == report["samplesConsumed"]
        assert digest_of(report["seed"], entries) == report["streamDigest"], f"{workers} CPU workers"
        results.append((report["streamDigest"], sorted(entries, key=lambda entry: (entry["step"], entry["slot"]))))
    assert results[0] == results[1] == results[2]
    return results[0]


def pictures_of_idx(folder, count):
    """A folder of IDX, and its pictures [count, SIDE, SIDE]."""
    folder.mkdir()
    pixels = np.random.default_rng(3).integers(0, 256, (count, SIDE, SIDE), np.uint8)
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, SIDE, SIDE) + pixels.tobytes())
    return pixels


def test_every_view_is_what_its_key_says(start, tmp_path):
    """Flips are predicted from the stored pictures, with nothing of the C++ code."""
    pixels = pictures_of_idx(tmp_path / "idx", 50)
    views = {"image": 3, "local": 2, "other": 1}
    _, entries = run(
        start,
        python("fields.py", "--pictures"),
        dataset={"uri": f"file://{tmp_path / 'idx'}", "format": "IDX", "label": {"type": "None"}},
        views=[{"name": name, "count": count} for name, count in views.items()],
        pipeline=[
            {"op": "HorizontalFlip", "repeat": 2},  # positions 0 and 1
            {"op": "CenterCrop", "size": {"height": 6, "width": 6}, "views": ["local"]},  # 2
            {"op": "VerticalFlip", "views": ["image", "local"]},  # 3
        ],
    )

    def expected(name, place, view, epoch, sample):
        picture = pixels[sample]
        for position in (0, 1):
            if chance(11, epoch, sample, position, 64 * place + view) < 0.5:
                picture = picture[:, ::-1]
        if name == "local":
            picture = picture[5:11, 5:11]
        if name != "other" and chance(11, epoch, sample, 3, 64 * place + view) < 0.5:
            picture = picture[::-1]
        return picture

    seen = set()
    for entry in entries:
        assert entry["names"] == ["image", "local", "other"]
        for place, (name, count) in enumerate(views.items()):
            tensor = np.asarray(entry["pictures"][name], np.uint8)
            side = 6 if name == "local" else SIDE
            shape = (len(entry["ids"]), *([count] if count > 1 else []), side, side, 1)
            tensor = tensor.reshape(shape)  # an empty one has lost its shape
            for sample, of_sample in zip(entry["ids"], tensor, strict=True):
                for view, picture in enumerate(of_sample.reshape(count, side, side)):
                    assert np.array_equal(picture, expected(name, place, view, entry["epoch"], sample))
                    seen.add((name, view, picture.tobytes()))
    assert len(seen) > 50 * 2 * 6 * 0.7  # two epochs of six pictures, of at most eight that there are


def test_two_views_of_a_picture_with_a_class(start):
    """SimCLR's case: the labels are classes as ever, and the checksum is of the pictures' bytes."""
    digest, entries = run(start, python("fields.py", "--class", "--pictures"), views=[{"name": "image", "count": 2}])
    for entry in entries:
        assert entry["names"] == ["image", "label"] and entry["dtype"] == "int64"
        assert entry["labels"] == [sample % 4 for sample in entry["ids"]]
        for picture in np.asarray(entry["pictures"]["image"]):
            assert picture.shape == (2, 12, 12, 3) and not np.array_equal(picture[0], picture[1])

    discarded = start(
        manifest(python("fields.py"), training__epochs=2, views=[{"name": "image", "count": 2}]), "--input-only"
    )
    assert discarded.succeed()["streamDigest"] == digest


def test_classes_beside_further_views(start):
    _, entries = run(
        start,
        python("fields.py", "--pictures"),
        views=[{"name": "crops", "count": 2}],
        training__gradientAccumulationSteps=2,
    )
    for entry in entries:
        assert entry["names"] == ["image", "label", "crops"] and entry["dtype"] == "int64"
        assert entry["labels"] == [sample % 4 for sample in entry["ids"]]


def test_one_view_is_no_view(start):
    digests = []
    for changes in ({}, {"views": [{"name": "image"}]}):
        job = start(manifest(python("fields.py", "--class"), **changes))
        digests.append(job.succeed()["streamDigest"])
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    "views, tiles", [([], 4), ([{"name": "image", "count": 2}, {"name": "local", "count": 2}], 16)]
)
def test_preview_shows_every_view(tmp_path, views, tiles):
    made = manifest(["true"])
    if views:
        made["spec"]["views"] = views
    (tmp_path / "job.yaml").write_text(json.dumps(made))
    sheet = tmp_path / "sheet.png"
    subprocess.run(
        [RUNTIME, "preview", tmp_path / "job.yaml", "--samples", "4", "--output", sheet], check=True, timeout=60
    )
    width, height = struct.unpack(">II", sheet.read_bytes()[16:24])
    single = sheet.with_name("single.png")
    subprocess.run(
        [RUNTIME, "preview", tmp_path / "job.yaml", "--samples", "1", "--output", single, "--set", "views="],
        check=True,
        timeout=60,
    )
    of_one = struct.unpack(">II", single.read_bytes()[16:24])
    assert width * height >= tiles * of_one[0] * of_one[1] * 0.9
