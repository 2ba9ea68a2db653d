"""Batches of a HeteroTrainingJob for any Python script."""

from .batch import Batch, Place
from .cluster import JobFailed, JobStatus, logs, report, status, submit, wait
from .errors import (
    HeteroError,
    MisuseError,
    ProgramError,
    ProtocolError,
    Stopped,
    StreamFailed,
    StreamTimeout,
)
from .local import run_local
from .loops import Epoch
from .report_frames import frames
from .stream import Stream
from .version import __version__

__all__ = [
    "Batch",
    "Epoch",
    "HeteroError",
    "JobFailed",
    "JobStatus",
    "MisuseError",
    "Place",
    "ProgramError",
    "ProtocolError",
    "Stopped",
    "Stream",
    "StreamFailed",
    "StreamTimeout",
    "__version__",
    "frames",
    "logs",
    "report",
    "run_local",
    "status",
    "submit",
    "wait",
]
