"""Draws pictures with any of four marks in them, and says which in metadata.jsonl, as Hugging Face has it.

python make_data.py /tmp/multilabel [--samples 800]
"""

import argparse
import json
import pathlib

import numpy as np
from PIL import Image

SIDE = 32
MARKS = {"square": (230, 60, 60), "cross": (60, 200, 60), "frame": (80, 80, 240), "stripe": (230, 210, 60)}


def draw(rng, present):
    """A noisy picture with one mark of each kind in `present`, which may cover one another a little."""
    picture = rng.integers(0, 70, (SIDE, SIDE, 3), dtype=np.uint8)
    corners = rng.permutation([(2, 2), (2, 18), (18, 2), (18, 18)])  # so that none hides another
    for (name, color), there, corner in zip(MARKS.items(), present, corners, strict=True):
        if not there:
            continue
        size = rng.integers(8, 12)
        top, left = corner + rng.integers(-1, 2, 2)
        mark = np.zeros((size, size), dtype=bool)
        if name == "square":
            mark[:] = True
        elif name == "cross":
            mark[size // 2 - 1 : size // 2 + 1] = mark[:, size // 2 - 1 : size // 2 + 1] = True
        elif name == "frame":
            mark[:] = True
            mark[2:-2, 2:-2] = False
        else:
            mark[size // 3 : 2 * size // 3] = True
        picture[top : top + size, left : left + size][mark] = color
    return picture


def write(folder, samples, seed):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    with open(folder / "metadata.jsonl", "w") as lines:
        for number in range(samples):
            present = rng.random(len(MARKS)) < 0.5
            name = f"{number:05}.png"
            Image.fromarray(draw(rng, present)).save(folder / name)
            lines.write(json.dumps({"file_name": name, "marks": present.astype(int).tolist()}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=800)
    args = parser.parse_args()
    write(args.folder / "train", args.samples, seed=1)
    write(args.folder / "val", args.samples // 8, seed=2)
