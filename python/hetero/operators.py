"""Transforms of torchvision and albumentations as functions of Python operators.

    # augment.py, beside the manifest: {op: Python, module: augment, function: transform, outputs: ...}
    transform = hetero.operators.torchvision(v2.Compose([v2.RandomResizedCrop(224), v2.ColorJitter(0.4, 0.4)]))

Random numbers of torch, numpy and `random` are those of the sample at each call, so a transform may draw from where it
likes to. A validation sample has none, and takes another transform.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, Optional

import numpy as np

from .errors import HeteroError

__all__ = ["Function", "albumentations", "torchvision"]

Sample = Dict[str, "np.ndarray[Any, Any]"]
Function = Callable[[Sample, Optional[np.random.Generator]], Sample]


class NoTransform(HeteroError, ValueError):
    """There is no transform for validation samples."""


def torchvision(training: Callable[..., Any], validation: Optional[Callable[..., Any]] = None) -> Function:
    """A transform of torchvision, v2 or not, from a tensor uint8 [channels, height, width] to one.

    `validation`: the transform for validation samples, without randomness. A transform that gives float32 is refused:
    end it before ToDtype and Normalize, which the pipeline's Normalize does where the batch is used.
    """
    import torch

    generator = torch.default_generator

    def function(sample: Sample, rng: Optional[np.random.Generator]) -> Sample:
        transform = _chosen(training, validation, rng)
        generator.manual_seed(_seed(rng))
        made = transform(torch.from_numpy(sample["image"]).permute(2, 0, 1))
        return {"image": made.permute(1, 2, 0).contiguous().numpy()}

    return function


def albumentations(training: Any, validation: Optional[Any] = None) -> Function:
    """A transform of albumentations, called with `image=`: uint8 [height, width, channels] in and out."""

    def function(sample: Sample, rng: Optional[np.random.Generator]) -> Sample:
        transform = _chosen(training, validation, rng)
        seed = _seed(rng)
        if hasattr(transform, "set_random_seed"):
            transform.set_random_seed(seed % (1 << 32))
        return {"image": transform(image=sample["image"])["image"]}

    return function


def _chosen(training: Any, validation: Any, rng: Optional[np.random.Generator]) -> Any:
    if rng is not None:
        return training
    if validation is None:
        raise NoTransform("this is a validation sample, and the operator was given no `validation` transform")
    return validation


def _seed(rng: Optional[np.random.Generator]) -> int:
    """Of all other generators, from the sample's own."""
    seed = 0 if rng is None else int(rng.integers(1 << 63))
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    return seed
