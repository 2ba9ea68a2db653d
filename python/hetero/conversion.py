"""Normalize and Cast, to the bits of the C++ trainer: x * scale[c] + shift[c] in float32, the product rounded first."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

# Whole rows are converted, by numbers that repeat per pixel: a loop over three channels takes ten times as long.
_CHUNK_VALUES = 64 << 10  # of a batch at once, so that they stay in the cache between the two operations


class Conversion:
    """From uint8 [n, H, W, C] to float32 [n, C, H, W], whose memory is in the order [n, H, W, C] ("channels last")."""

    def __init__(self, scale: Sequence[float], offset: Sequence[float], row_pixels: int) -> None:
        """`row_pixels`: pixels of as many values as the numbers are repeated for; a row of the pictures."""
        self._scale = np.tile(np.asarray(scale, dtype=np.float32), row_pixels)
        self._shift = np.tile(np.asarray(offset, dtype=np.float32), row_pixels)
        self._on_device: Optional[List[Any]] = None

    def with_numpy(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        count, height, width, channels = pixels.shape
        out = np.empty(pixels.shape, dtype=np.float32)
        rows, values = pixels.reshape(-1, width * channels), out.reshape(-1, width * channels)
        at_once = max(1, _CHUNK_VALUES // max(1, width * channels))
        for first in range(0, count * height, at_once):
            part = values[first : first + at_once]
            np.multiply(rows[first : first + at_once], self._scale, out=part)
            np.add(part, self._shift, out=part)
        planes: NDArray[np.float32] = out.transpose(0, 3, 1, 2)
        return planes

    def with_torch(self, pixels: Any) -> Any:
        """`pixels`: a tensor on a device, where the result will be, too. On the CPU numpy is faster."""
        import torch

        if self._on_device is None or self._on_device[0].device != pixels.device:
            self._on_device = [torch.from_numpy(numbers).to(pixels.device) for numbers in (self._scale, self._shift)]
        scale, shift = self._on_device
        count, height, width, channels = pixels.shape
        out = torch.empty((count, height, width, channels), dtype=torch.float32, device=pixels.device)
        rows, values = pixels.reshape(-1, width * channels), out.view(-1, width * channels)
        values.copy_(rows)
        values.mul_(scale)
        values.add_(shift)
        return out.permute(0, 3, 1, 2)
