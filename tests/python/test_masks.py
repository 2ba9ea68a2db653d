"""Samples with a mask: cropped and turned as their pictures are, wherever that is done, and covered by the digest."""

import io
import json
import subprocess
import tarfile

import numpy as np
import pytest
from PIL import Image

from proof.job import RUNTIME, manifest, python
from proof.record import digest_of

CLASSES, FILL, HEIGHT, WIDTH = 21, 255, 40, 52
# Each class has a colour of its own, and none is black: a picture says what its mask has to be.
COLOURS = np.array([[40 + 10 * value, 255 - 7 * value, 30 + value] for value in range(CLASSES)], np.uint8)
SIZE = {"height": 24, "width": 28}
NEAREST = {"interpolation": "Nearest", "also": ["mask"]}
PIPELINE = [
    {"op": "Decode"},
    {"op": "RandomResizedCrop", "size": {"height": 30, "width": 30}, **NEAREST},
    {"op": "HorizontalFlip", "also": ["mask"]},
    {"op": "VerticalFlip", "also": ["mask"]},
    {"op": "Rotate", "degrees": {"min": -60, "max": 60}, **NEAREST},
    {"op": "CenterCrop", "size": {"height": 36, "width": 26}, "also": ["mask"]},
    {"op": "Resize", "size": SIZE, **NEAREST},
    {"op": "Normalize"},
]


def png(image):
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def draw(number):
    """A mask of stripes and blocks."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    return ((x // (3 + number % 5) + y // (2 + number % 7) + number) % CLASSES).astype(np.uint8)


def files_of(number):
    """By what follows the sample's name; of every second one the mask has a palette."""
    mask = Image.fromarray(draw(number))
    if number % 2:
        mask = Image.fromarray(draw(number), mode="P")
        mask.putpalette(list(range(255, -1, -1)) * 3)
    return {
        "png": png(Image.fromarray(COLOURS[draw(number)])),
        "seg.png": png(mask),
        "cls": str(number % 3).encode(),
    }


def write_shards(folder, samples, change=lambda number, files: files):
    folder.mkdir(parents=True)
    for shard in range(0, samples, 20):
        with tarfile.open(folder / f"{shard:04d}.tar", "w") as tar:
            for number in range(shard, min(shard + 20, samples)):
                for name, content in change(number, files_of(number)).items():
                    member = tarfile.TarInfo(f"{number:04d}.{name}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return f"file://{folder}"


def dataset(uri, **more):
    return {"uri": uri, "format": "WebDataset", "fields": {"mask": "seg.png"}, "mask": {"fill": FILL}, **more}


def job(uri, workers, **changes):
    made = manifest(python("masks.py"), dataset=dataset(uri), pipeline=PIPELINE, training__epochs=2)
    made["spec"]["roles"][1]["replicas"] = workers
    for path, value in changes.items():
        made["spec"][path] = value
    return made


def finish(run):
    """The report, the script's entries and its arrays by name."""
    report = run.succeed()
    entries = sum(run.journal("fields"), [])
    arrays = {}
    for path in sorted(run.records.glob("kept-*.npz")):
        with np.load(path) as kept:
            arrays.update(kept)
    assert digest_of(report["seed"], entries) == report["streamDigest"]
    return report, entries, arrays


def check_masks(arrays):
    beyond = 0
    for name in arrays:
        if not name.startswith("image-"):
            continue
        picture, mask = arrays[name], arrays["mask" + name[5:]]
        outside = (picture == 0).all(axis=-1)
        assert (mask[outside] == FILL).all(), name
        assert (mask[~outside] < CLASSES).all(), name
        assert (COLOURS[mask[~outside]] == picture[~outside]).all(), name
        beyond += outside.sum()
    assert beyond > 0, "nothing was turned"


def test_any_number_of_workers(start, tmp_path):
    """The trainers' own cores make what one CPU worker and three do."""
    uri = write_shards(tmp_path / "train", 61)
    digests = set()
    for workers in (0, 1, 3):
        report, entries, arrays = finish(start(job(uri, workers)))
        assert report["samplesConsumed"] == 122 and report["badSamples"] == 0
        assert all(entry["keys"] == ["image", "label", "mask"] for entry in entries)
        for entry in entries:
            assert entry["labels"] == [sample % 3 for sample in entry["ids"]]
        assert len(arrays) == 4 * 61
        check_masks(arrays)
        digests.add(report["streamDigest"])
    assert len(digests) == 1
    other = copy_of(job(uri, 1), fill=0)
    assert start(other).succeed()["streamDigest"] not in digests, "the masks are no part of the digest"


def copy_of(made, fill):
    made["spec"]["dataset"]["mask"]["fill"] = fill
    return made


def test_no_label_another_name_and_validation(start, tmp_path):
    uri = write_shards(tmp_path / "train", 40)
    validation = {
        "uri": write_shards(tmp_path / "val", 20, lambda number, files: {**files, "mask": files.pop("seg.png")}),
        "format": "WebDataset",
        "fields": {"mask": "mask"},
    }
    made = job(uri, 2)
    made["spec"]["dataset"] = dataset(uri, label={"type": "None"}, validation=validation)
    made["spec"]["dataset"]["mask"] = {"name": "classes", "fill": FILL}
    made["spec"]["pipeline"] = json.loads(json.dumps(PIPELINE).replace('["mask"]', '["classes"]'))
    _, entries, arrays = finish(start(made, environment={"MASK_NAME": "classes"}))
    assert all(entry["keys"] == ["image", "classes"] for entry in entries)
    assert sum(name.startswith("mask-val-") for name in arrays) == 20
    check_masks(arrays)


def test_samples_without_a_good_mask_are_replaced(start, tmp_path):
    def change(number, files):
        if number == 4:
            del files["seg.png"]
        if number == 9:
            files["seg.png"] = files["seg.png"][:100]
        if number == 14:
            files["seg.png"] = png(Image.fromarray(draw(1)[:, 1:]))
        if number == 19:
            files["seg.png"] = files["png"]
        return files

    report, entries, arrays = finish(start(job(write_shards(tmp_path / "train", 40, change), 1)))
    assert report["badSamples"] == 4
    reasons = {bad["sampleId"]: bad["reason"] for bad in report["badSampleList"]}
    assert "has no mask under seg.png" in reasons[4]
    assert "mask: PNG: " in reasons[9]
    assert "40x51, and the picture is 40x52" in reasons[14]
    assert "has colours of 8 bits" in reasons[19]
    seen = {sample for entry in entries for sample in entry["ids"]}
    assert seen == set(range(40)) - set(reasons)
    check_masks(arrays)


@pytest.mark.parametrize("spelling", ["csv", "jsonl"])
def test_masks_of_a_manifest(start, tmp_path, spelling):
    folder = tmp_path / "files"
    folder.mkdir()
    rows = []
    for number in range(24):
        files = files_of(number)
        (folder / f"{number}.png").write_bytes(files["png"])
        (folder / f"{number}-mask.png").write_bytes(files["seg.png"])
        rows.append({"path": f"{number}.png", "annotation": f"{number}-mask.png", "label": number % 3})
    if spelling == "csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    else:
        lines = [json.dumps(row) for row in rows]
    (folder / f"list.{spelling}").write_text("\n".join(lines) + "\n")
    made = job(f"file://{folder}/list.{spelling}", 1)
    made["spec"]["dataset"] = dataset(f"file://{folder}/list.{spelling}")
    fields = {"image": "path", "label": {"field": "label"}, "mask": "annotation"}
    made["spec"]["dataset"].update(format="Manifest", fields=fields)
    report, _, arrays = finish(start(made))
    assert report["badSamples"] == 0
    check_masks(arrays)


def test_inspect_lists_them(tmp_path):
    def inspect(*options):
        uri = write_shards(tmp_path / f"set{len(options)}", 10, change)
        return subprocess.run(
            [RUNTIME, "inspect", uri, *options], check=True, capture_output=True, text=True, timeout=60
        ).stdout

    def change(number, files):
        return {name: content for name, content in files.items() if number != 3 or name != "seg.png"}

    text = inspect("--mask", "seg.png")
    assert "masks    of the values 0-20\n" in text and "      mask: seg.png\n" in text
    assert "1 of 10 samples is bad" in text and "has no mask under seg.png" in text
    pixels = json.loads(inspect("--mask", "seg.png", "--json"))["maskPixels"]
    assert sum(pixels.values()) == 9 * HEIGHT * WIDTH and set(pixels) == set(map(str, range(CLASSES)))
    assert "masks" not in inspect()


def test_pack_takes_none(tmp_path):
    uri = write_shards(tmp_path / "train", 10)
    command = [RUNTIME, "pack", uri, tmp_path / "packed", "--mask", "seg.png"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "masks are not packed" in done.stdout + done.stderr


def test_preview_shows_the_pictures_alone(tmp_path):
    uri = write_shards(tmp_path / "train", 4)
    sheets = []
    for given in (dataset(uri), {"uri": uri, "format": "WebDataset"}):
        masked = "fields" in given
        pipeline = [entry if masked else {k: v for k, v in entry.items() if k != "also"} for entry in PIPELINE]
        (tmp_path / "job.yaml").write_text(json.dumps(manifest(["true"], dataset=given, pipeline=pipeline)))
        sheet = tmp_path / f"sheet-{masked}.png"
        command = [RUNTIME, "preview", tmp_path / "job.yaml", "--samples", "4", "--output", sheet]
        subprocess.run(command, check=True, timeout=60)
        sheets.append(sheet.read_bytes())
    assert sheets[0] == sheets[1]
