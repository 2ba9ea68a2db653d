"""Normalize and Cast, to the bits of the C++ trainer: x * scale[c] + shift[c] in float32, the product rounded first."""

from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

# Whole rows are converted, by numbers that repeat per pixel: a loop over three channels takes ten times as long.
_CHUNK_VALUES = 64 << 10  # of a batch at once, so that they stay in the cache between the two operations


class Conversion:
    """From uint8 [n, H, W, C] to float32 [n, C, H, W]; several views have a dimension behind the first one."""

    def __init__(
        self, scale: Sequence[float], offset: Sequence[float], row_pixels: int, channels_last: bool = False
    ) -> None:
        """`row_pixels`: pixels of as many values as the numbers are repeated for; a row of the pictures.

        `channels_last`: the memory is in the order [n, H, W, C], as in torch.channels_last; else in that of the shape,
        as a DataLoader's collated pictures are.
        """
        self._channels_last = channels_last
        self._scale = np.tile(np.asarray(scale, dtype=np.float32), row_pixels)
        self._shift = np.tile(np.asarray(offset, dtype=np.float32), row_pixels)
        self._on_device: Optional[List[Any]] = None

    def with_numpy(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        *several, height, width, channels = pixels.shape
        planes = self._planes(pixels.reshape(math.prod(several), height, width, channels))
        return planes.reshape(*several, channels, height, width)  # a view: the first dimension is divided

    def _planes(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        count, height, width, channels = pixels.shape
        order = (count, height, width, channels) if self._channels_last else (count, channels, height, width)
        out = np.empty(order, dtype=np.float32)
        pictures = out if self._channels_last else out.transpose(0, 2, 3, 1)
        at_once = min(height, max(1, _CHUNK_VALUES // max(1, width * channels)))  # rows of one picture
        part = np.empty((at_once, width * channels), dtype=np.float32)
        for picture, converted in zip(pixels.reshape(count, height, width * channels), pictures):
            for first in range(0, height, at_once):
                rows = picture[first : first + at_once]
                values = np.multiply(rows, self._scale, out=part[: len(rows)])
                values += self._shift
                converted[first : first + at_once] = values.reshape(-1, width, channels)
        planes: NDArray[np.float32] = pictures.transpose(0, 3, 1, 2)
        return planes

    def with_torch(self, pixels: Any) -> Any:
        """`pixels`: a tensor on a device, where the result will be, too. On the CPU numpy is faster."""
        import torch

        if self._on_device is None or self._on_device[0].device != pixels.device:
            self._on_device = [torch.from_numpy(numbers).to(pixels.device) for numbers in (self._scale, self._shift)]
        scale, shift = self._on_device
        *_, width, channels = pixels.shape
        out = torch.empty(pixels.shape, dtype=torch.float32, device=pixels.device)
        rows, values = pixels.reshape(-1, width * channels), out.view(-1, width * channels)
        values.copy_(rows)
        values.mul_(scale)
        values.add_(shift)
        planes = out.movedim(-1, -3)
        return planes if self._channels_last else planes.contiguous()
