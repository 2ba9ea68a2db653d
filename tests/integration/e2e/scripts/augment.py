"""A Python operator: pixels that its random numbers and the picture decide, and nothing else."""

import numpy


def transform(sample, rng):
    image = sample["image"]
    return {"image": image ^ rng.integers(0, 256, image.shape, numpy.uint8)}
