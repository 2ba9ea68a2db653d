"""Batches of a HeteroTrainingJob for any Python script."""

from .batch import Batch, Place
from .errors import (
    HeteroError,
    MisuseError,
    ProgramError,
    ProtocolError,
    Stopped,
    StreamFailed,
    StreamTimeout,
)
from .loops import Epoch
from .stream import Stream
from .version import __version__

__all__ = [
    "Batch",
    "Epoch",
    "HeteroError",
    "MisuseError",
    "Place",
    "ProgramError",
    "ProtocolError",
    "Stopped",
    "Stream",
    "StreamFailed",
    "StreamTimeout",
    "__version__",
]
