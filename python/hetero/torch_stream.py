"""The stream as PyTorch's loaders want it. Imported only when torch is."""

from __future__ import annotations

from typing import Any

import torch.utils.data
from torch.utils.data._utils import collate

from .batch import Batch
from .errors import MisuseError
from .stream import Stream


class TorchStream(Stream, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """A Stream that is an IterableDataset, and stateful as torchdata's StatefulDataLoader asks a dataset to be."""


def _refuse_to_collate(*_: Any, **__: Any) -> Any:
    raise MisuseError(
        "the stream's batches are whole and are not put together again: DataLoader(stream, batch_size=None, "
        "num_workers=0); the size of a batch is training.batchSizePerWorker of the manifest"
    )


# Older versions of PyTorch have no such table; their message names the type Batch at least.
getattr(collate, "default_collate_fn_map", {})[Batch] = _refuse_to_collate
