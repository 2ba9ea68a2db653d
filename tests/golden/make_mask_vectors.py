#!/usr/bin/env python3
"""Writes tests/golden/masks: what torchvision's joint transforms make of the mask beside a picture.

    pip install torch==2.11.0 torchvision==0.26.0 numpy pillow
    python tests/golden/make_mask_vectors.py

cases.json lists {operators, fill, mask, output} for the pipeline and {box, mask, output} for the kernel below
RandomResizedCrop; `mask` is a PNG, `output` {file, height, width} with uint8 [height, width] in its file. Every byte
has to be the same.
"""

import json
import pathlib
import struct
import zlib

import numpy as np
import PIL.Image
import torch
import torchvision
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

OUTPUT = pathlib.Path(__file__).parent / "masks"
VERSIONS = {"torch": "2.11.0", "torchvision": "0.26.0"}
HEIGHT, WIDTH = 37, 53
cases = []


def classes():
    """Stripes, blocks, single pixels and a border of 255, which many datasets ignore."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    mask = (x // 7 + y // 5) % 16
    mask[(x - 26) ** 2 + (y - 18) ** 2 < 90] = 7
    mask[::9, ::11] = 15
    return mask.astype(np.uint8)


def chunk(tag, data):
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))


def palette_png(values, bits):
    """Indices of a palette, several in a byte where they have fewer bits."""
    per_byte = 8 // bits
    padded = np.pad(values, ((0, 0), (0, -values.shape[1] % per_byte)))
    packed = np.zeros((padded.shape[0], padded.shape[1] // per_byte), np.uint8)
    for i in range(per_byte):
        packed |= padded[:, i::per_byte] << (8 - bits * (i + 1))
    rows = b"".join(b"\0" + row.tobytes() for row in packed)
    header = struct.pack(">IIBBBBB", values.shape[1], values.shape[0], bits, 3, 0, 0, 0)
    palette = np.random.default_rng(2).integers(0, 256, (1 << bits, 3)).astype(np.uint8)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"PLTE", palette.tobytes())
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def write_masks():
    """By their names: the file, and the values as Pillow reads them."""
    mask = classes()
    bordered = mask.copy()
    bordered[:2] = bordered[-2:] = bordered[:, :2] = bordered[:, -2:] = 255
    PIL.Image.fromarray(bordered).save(OUTPUT / "grey.png")
    (OUTPUT / "palette.png").write_bytes(palette_png(mask, 4))
    (OUTPUT / "palette2.png").write_bytes(palette_png(mask % 4, 2))
    paletted = PIL.Image.fromarray(bordered, mode="P")
    paletted.putpalette(np.random.default_rng(3).integers(0, 256, 768).astype(np.uint8).tobytes())
    paletted.save(OUTPUT / "voc.png", transparency=0)
    wanted = {"grey": bordered, "palette": mask, "palette2": mask % 4, "voc": bordered}
    masks = {}
    for name, values in wanted.items():
        read = np.array(PIL.Image.open(OUTPUT / f"{name}.png"))
        assert (read == values).all(), name
        masks[name] = tv_tensors.Mask(torch.from_numpy(read))
    return masks


def add(case, mask, result):
    assert isinstance(result, tv_tensors.Mask) and result.ndim == 2, "[H, W] stays [H, W]"
    name = f"{len(cases):02d}.bin"
    (OUTPUT / name).write_bytes(result.contiguous().numpy().tobytes())
    height, width = result.shape
    cases.append({**case, "mask": f"{mask}.png", "output": {"file": name, "height": height, "width": width}})


def both(transform, masks, name):
    """The picture and the mask go through the transform together."""
    picture = tv_tensors.Image(torch.zeros((3, HEIGHT, WIDTH), dtype=torch.uint8))
    image, mask = transform(picture, masks[name])
    assert image.shape[-2:] == mask.shape[-2:]
    return mask


def sized(op, height, width, **more):
    return {"op": op, "size": {"height": height, "width": width}, "also": ["mask"], **more}


def main():
    for name, version in VERSIONS.items():
        found = {"torch": torch, "torchvision": torchvision}[name].__version__.split("+")[0]
        assert found == version, f"{name} {version} is needed, this is {found}"
    OUTPUT.mkdir(exist_ok=True)
    for old in OUTPUT.iterdir():
        old.unlink()
    masks = write_masks()

    def pipeline(name, operators, transform, fill=0):
        add({"operators": operators, "fill": fill}, name, both(transform, masks, name))

    for name in masks:
        pipeline(name, [], v2.Identity())
    for h, w in [(19, 23), (74, 106), (64, 20), (HEIGHT, 31), (12, WIDTH), (2, 3), (7, 150)]:
        pipeline("grey", [sized("Resize", h, w)], v2.Resize((h, w)))
    for side in (20, 37, 50):
        pipeline("voc", [{"op": "Resize", "shorterSide": side, "also": ["mask"]}], v2.Resize(side))
    for h, w in [(20, 20), (21, 24), (HEIGHT, WIDTH), (60, 20), (20, 61), (64, 65)]:
        pipeline("palette", [sized("CenterCrop", h, w)], v2.CenterCrop((h, w)))
    certain = {"probability": 1, "also": ["mask"]}
    pipeline("grey", [{"op": "HorizontalFlip", **certain}], v2.RandomHorizontalFlip(1))
    pipeline("voc", [{"op": "VerticalFlip", **certain}], v2.RandomVerticalFlip(1))
    for degrees in (-123.4, -90, -17, 0, 3.3, 45.5, 180, 211):
        operator = {"op": "Rotate", "degrees": {"min": degrees, "max": degrees}, "also": ["mask"]}
        for fill in (0, 255, 21):
            fills = {tv_tensors.Image: 0, tv_tensors.Mask: fill}
            pipeline("grey", [operator], v2.RandomRotation((degrees, degrees), fill=fills), fill)
    pipeline(
        "voc",
        [
            {"op": "ColorJitter", "brightness": {"min": 0.5, "max": 2}},
            {"op": "HorizontalFlip", **certain},
            {"op": "Rotate", "degrees": {"min": 12.5, "max": 12.5}, "interpolation": "Bilinear", "also": ["mask"]},
            {"op": "RandomErasing", "probability": 1},
            sized("CenterCrop", 30, 60),
            sized("Resize", 24, 24, interpolation="Bilinear"),
        ],
        v2.Compose(
            [
                v2.ColorJitter(brightness=(0.5, 2)),
                v2.RandomHorizontalFlip(1),
                v2.RandomRotation((12.5, 12.5), interpolation=v2.InterpolationMode.BILINEAR),
                v2.CenterCrop((30, 60)),
                v2.Resize((24, 24), antialias=True),
            ]
        ),
    )
    for top, left, h, w, size in [(3, 5, 20, 17, (24, 24)), (0, 0, 28, 28, (16, 16)), (10, 2, 9, 25, (24, 24))]:
        box = {"top": top, "left": left, "height": h, "width": w}
        result = F.resized_crop(masks["voc"], top, left, h, w, list(size))
        add({"box": box}, "voc", tv_tensors.wrap(result, like=masks["voc"]))
    index = {"made_with": VERSIONS, "cases": cases}
    (OUTPUT / "cases.json").write_text(json.dumps(index, indent=1) + "\n")


if __name__ == "__main__":
    main()
