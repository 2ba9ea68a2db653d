"""From the bytes of a slot to the arrays of a batch."""

from __future__ import annotations

import math
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from .arena import Owners
from .conversion import Conversion
from .errors import ProtocolError

_COPIED_BELOW = 64 << 10  # bytes: labels and ids are copied, so that keeping them keeps no batch

Message = Dict[str, Any]


def torch_is_imported() -> bool:
    return "torch" in sys.modules


# The fields that are pictures, uint8 [n, H, W, C] or, of several views, [n, views, H, W, C], and what is made of them.
Pictures = Mapping[str, Optional[Conversion]]

# Called when a batch is handed to the script, on the thread that gets it.
HandOver = Callable[[], None]


def nothing_to_do() -> None:
    """For arrays that are there."""


class NumpyViews:
    """Arrays of numpy."""

    ahead = 0  # batches that are fetched before the script asks for them

    def __init__(self, pictures: Pictures, raw: bool) -> None:
        self._pictures = pictures
        self._raw = raw

    def arrays(self, owners: Owners, fields: List[Message]) -> Tuple[Dict[str, Any], HandOver]:
        return {str(field["name"]): self._array(owners, field) for field in fields}, nothing_to_do

    def _array(self, owners: Owners, field: Message) -> Any:
        array = array_of(owners, field)
        if field["name"] not in self._pictures:
            return array.copy() if array.nbytes <= _COPIED_BELOW else array
        conversion = self._pictures[field["name"]]
        if conversion is not None:
            return conversion.with_numpy(array)
        return array if self._raw else np.moveaxis(array, -1, -3)


class TorchViews:
    """Tensors of PyTorch on the CPU."""

    ahead = 0

    def __init__(self, pictures: Pictures, raw: bool) -> None:
        import torch

        # By numpy: its view of a buffer costs a fraction of torch's, and its conversion half of the time.
        self._arrays = NumpyViews(pictures, raw)
        self._tensor = torch.from_numpy

    def arrays(self, owners: Owners, fields: List[Message]) -> Tuple[Dict[str, Any], HandOver]:
        arrays, _ = self._arrays.arrays(owners, fields)
        return {name: self._tensor(array) for name, array in arrays.items()}, nothing_to_do


def array_of(owners: Owners, field: Message) -> Any:
    dtype, shape = np.dtype(field["dtype"]), field["shape"]
    expected = math.prod(shape) * dtype.itemsize
    if expected != field["bytes"]:
        raise ProtocolError(
            f"field '{field['name']}' of shape {list(shape)} has {field['bytes']} bytes, not {expected}; "
            "this is an error of the agent"
        )
    if not expected:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, owners[field.get("file", 0)], field["offset"])
