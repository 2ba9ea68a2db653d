"""Draws pictures with a disc in each, and says where its middle is in metadata.jsonl, as Hugging Face has it.

python make_data.py /tmp/regression [--samples 800]
"""

import argparse
import json
import pathlib

import numpy as np
from PIL import Image

SIDE = 32


def draw(rng, center):
    """A noisy picture with a disc of some colour around (x, y), in pixels."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    disc = (columns - center[0]) ** 2 + (rows - center[1]) ** 2 <= rng.uniform(3, 6) ** 2
    picture = rng.integers(0, 70, (SIDE, SIDE, 3), dtype=np.uint8)
    picture[disc] = rng.integers(140, 255, 3, dtype=np.uint8)
    return picture


def write(folder, samples, seed):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    with open(folder / "metadata.jsonl", "w") as lines:
        for number in range(samples):
            center = rng.uniform(5, SIDE - 5, 2)
            name = f"{number:05}.png"
            Image.fromarray(draw(rng, center)).save(folder / name)
            lines.write(json.dumps({"file_name": name, "center": (center / SIDE).round(5).tolist()}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--samples", type=int, default=800)
    args = parser.parse_args()
    write(args.folder / "train", args.samples, seed=1)
    write(args.folder / "val", args.samples // 8, seed=2)
