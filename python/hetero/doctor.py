"""`python -m hetero doctor`: what this package finds, and whether it fits."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from typing import Iterator, Optional, Tuple

from . import program
from .errors import HeteroError
from .stream import SOCKET
from .version import __version__

Finding = Tuple[Optional[bool], str]  # right, wrong, or neither; and a line that says what to do where it is wrong


def findings() -> Iterator[Finding]:
    yield None, f"hetero {__version__} in {os.path.dirname(os.path.abspath(__file__))}"
    yield from _python()
    yield from _libraries()
    yield from _runtime()
    yield from _surroundings()


def run() -> int:
    """Prints what there is; 1 when something is wrong."""
    wrong = 0
    for right, line in findings():
        mark = {True: "ok  ", False: "BAD ", None: "    "}[right]
        print(f"{mark}{line}")
        wrong += right is False
    return 1 if wrong else 0


def _python() -> Iterator[Finding]:
    version = ".".join(str(part) for part in sys.version_info[:3])
    yield sys.version_info >= (3, 9), f"Python {version} at {sys.executable} (3.9 or newer is needed)"
    if not sys.platform.startswith("linux"):
        yield False, f"{sys.platform}: batches are shared by memfd, which Linux alone has"


def _libraries() -> Iterator[Finding]:
    yield _library("numpy", needed="pip install numpy")
    yield _library("torch", without="batches are numpy arrays; no IterableDataset, no GPU")
    if "torch" in sys.modules:
        yield from _gpu()
    yield _library("kubernetes", without="no submit, wait, status, logs, report: pip install kubernetes")
    yield _library("pandas", without="no frames: pip install pandas")


def _library(name: str, needed: str = "", without: str = "") -> Finding:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if needed:
            return False, f"{name} cannot be imported ({error}): {needed}"
        return None, f"{name} is not there: {without}"
    return True, f"{name} {getattr(module, '__version__', '')}"


def _gpu() -> Iterator[Finding]:
    import torch

    if not torch.cuda.is_available():
        yield None, "torch sees no GPU: tensors stay on the CPU"
        return
    for index in range(torch.cuda.device_count()):
        yield True, f"GPU {index}: {torch.cuda.get_device_name(index)}"
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY:
        yield None, f"{soft} bytes of memory may be locked (ulimit -l); pinning the batches may need more"


def _runtime() -> Iterator[Finding]:
    try:
        path = program.runtime()
        said = program.version(path)
    except HeteroError as error:
        yield None, f'{error} (only run_local and Stream("job.yaml") need it)'
        return
    same = said.split(" ")[0] == __version__
    advice = "" if same else f", but the package is {__version__}: install those of one version"
    yield same, f"hetero-runtime {said} at {path}{advice}"


def _surroundings() -> Iterator[Finding]:
    socket = os.environ.get(SOCKET)
    if socket is None:
        yield None, f"no job has started this process (${SOCKET} is not set)"
    elif os.path.exists(socket):
        yield True, f"this process belongs to a job; its agent listens at {socket}"
    else:
        yield False, f"${SOCKET} names {socket}, where nothing listens: the job is over"
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        yield None, f"the address space is limited to {soft} bytes (ulimit -v): the batches are mapped into it"
