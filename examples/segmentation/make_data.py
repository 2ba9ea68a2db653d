"""Draws pictures of warm discs and cold squares with their masks, and packs them as WebDataset shards.

pip install numpy pillow
python make_data.py /tmp/shapes
"""

import argparse
import io
import pathlib
import tarfile

import numpy as np
from PIL import Image

SIDE = 64
DISC, SQUARE = 1, 2  # classes; 0 is what lies behind them


def draw(rng):
    """A picture [SIDE, SIDE, 3] and its mask [SIDE, SIDE]: a class for each pixel."""
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    picture = rng.integers(0, 90, 3) + rng.normal(0, 12, (SIDE, SIDE, 3)) + (x[..., None] + y[..., None]) * rng.random()
    mask = np.zeros((SIDE, SIDE), np.uint8)
    for _ in range(rng.integers(1, 4)):
        kind, size = rng.integers(1, 3), rng.integers(7, 16)
        left, top = rng.integers(size, SIDE - size, 2)
        if kind == DISC:
            inside = (x - left) ** 2 + (y - top) ** 2 <= size**2
        else:
            inside = (abs(x - left) < size) & (abs(y - top) < size)
        colour = rng.integers((180, 60, 20), (256, 160, 90))  # discs are warm, squares cold
        colour = colour if kind == DISC else colour[::-1]
        picture[inside] = colour + rng.normal(0, 25, (inside.sum(), 3))
        mask[inside] = kind
    return picture.clip(0, 255).astype(np.uint8), mask


def encoded(image, **options):
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def write_shard(path, samples, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for number in range(samples):
            picture, mask = draw(np.random.default_rng([seed, number]))
            mask = Image.fromarray(mask, mode="P")  # a palette: people see colours, and the indices count
            mask.putpalette([0, 0, 0, 220, 60, 60, 60, 120, 220])
            for name, content in (
                ("jpg", encoded(Image.fromarray(picture), format="JPEG", quality=90)),
                ("seg.png", encoded(mask, format="PNG")),
            ):
                member = tarfile.TarInfo(f"{number:05d}.{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--samples", type=int, default=200, help="in each of three shards; half as many for validation")
args = parser.parse_args()
for shard in range(3):
    write_shard(args.folder / f"train/shapes-{shard:06d}.tar", args.samples, seed=shard)
write_shard(args.folder / "val/shapes-000000.tar", args.samples // 2, seed=1000)
