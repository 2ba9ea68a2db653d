"""Runs the functions of a job's Python operators. A CPU worker starts it, and is what it talks to.

One process imports numpy and the modules that the pipeline names, and stays free of threads. From it an interpreter is
forked for each thread of the worker that wants one, so that all share the memory of what was imported. The worker has
this file in itself, as it was when it was built; nothing else of the package is used.

    python3 FILE FD

FD is a Unix socket that keeps messages apart (SOCK_SEQPACKET). First comes one message of JSON, `{"path": [FOLDER...],
"functions": [{"module", "function", "shape"}...]}`, answered by `{"environment": {...}}` or by `{"error": TEXT,
"index": N}`. Each further message brings the socket of one interpreter to fork. When the other end is closed, all end.

An interpreter says its process number, and then answers requests, one after the other. They are about memory that it
shares with the worker, which comes with a request of the kind MEMORY: a picture at its beginning, and a place for the
result.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # this file's folder, which is nobody's

import ctypes
import hashlib
import importlib
import importlib.util
import json
import math
import mmap
import os
import platform
import random
import signal
import socket
import struct
import time
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple

try:
    import numpy as np
except ImportError as problem:
    raise SystemExit(
        f"{sys.executable} has no numpy, which Python operators need ({problem}); install it there, or put the folder "
        "of another python3 first in PATH"
    ) from None

# As runtime/interpreter/messages.h has it.
REQUEST = struct.Struct("<QIIiiiIQQQQQQQ")
CALL, MEMORY = 1, 2
REPLY = struct.Struct("<QQI")  # number of the request, CPU time, code; behind it text for who has to mend the function
DONE, RAISED, RETRY, WRONG_RESULT = 0, 1, 2, 3
MOST_TEXT = 1000  # bytes


# What machines say in other words than MemoryError and OSError when they lack something.
SHORTAGES = ("can't allocate", "cannot allocate", "out of memory", "insufficient memory", "can't start new thread")


class Request(NamedTuple):
    number: int
    kind: int
    function: int
    height: int
    width: int
    channels: int
    training: int
    memory_bytes: int  # of MEMORY
    result_at: int  # bytes from the beginning of the memory
    # What random numbers are a function of. `position` is the operator's in the pipeline; `view` is that of the picture
    # among those which are made of one sample.
    seed: int
    epoch: int
    sample: int
    position: int
    view: int


PR_SET_PDEATHSIG = 1

Function = Callable[[Dict[str, "np.ndarray[Any, Any]"], Optional[np.random.Generator]], Any]


class Unusable(Exception):
    """A function cannot be had; with its place among the functions."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index


def reason(error: BaseException, module: str) -> str:
    """Its last line, and the last place in the file of the user's module that led to it."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()[-1]
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{text} ({os.path.basename(error.filename)}, line {error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    file = getattr(sys.modules.get(module), "__file__", None)
    own = [frame for frame in frames if frame.filename == file] or frames[1:]
    return f"{text} ({os.path.basename(own[-1].filename)}, line {own[-1].lineno})" if own else text


def load(index: int, spec: Mapping[str, Any]) -> Function:
    module, name = spec["module"], spec["function"]
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(error.name + ".")):
            folders = ", ".join(sys.path)
            raise Unusable(
                index,
                f"there is no module {module!r} in {folders}; name its folder in `path` or in PYTHONPATH",
            ) from None
        why = reason(error, module)
        raise Unusable(index, f"importing {module!r}: {why}; install it for {sys.executable}") from None
    except BaseException as error:
        raise Unusable(index, f"importing {module!r}: {reason(error, module)}") from None
    function = getattr(found, name, None)
    if function is None:
        raise Unusable(index, f"module {module!r} ({getattr(found, '__file__', 'built in')}) has no function {name!r}")
    if not callable(function):
        raise Unusable(index, f"{module}.{name} is {type(function).__name__}, which cannot be called")
    return function  # type: ignore[no-any-return]


def file_of(module: str) -> Optional[str]:
    file = getattr(sys.modules[module], "__file__", None)
    return file if isinstance(file, str) and os.path.isfile(file) else None


def hash_of(module: str) -> str:
    file = file_of(module)
    if file is None:
        return "built in"
    with open(file, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()[:16]


def hash_beside(folders: Sequence[str]) -> str:
    """Of all modules that were imported from the user's folders, packages installed there left out."""
    own = [os.path.realpath(folder) + os.sep for folder in folders if folder]
    files = {}
    for module in list(sys.modules.values()):
        try:
            named = module.__file__
        except Exception:  # what stands for a module may run code when it is asked
            continue
        if not isinstance(named, str):
            continue
        file = os.path.realpath(named)
        for folder in own:
            inside = file[len(folder) :]
            installed = {"site-packages", "dist-packages"}.intersection(inside.split(os.sep))
            if file.startswith(folder) and not installed and os.path.isfile(file):
                files[inside] = file
    hashed = hashlib.sha256()
    for name in sorted(files):
        with open(files[name], "rb") as source:
            hashed.update(f"{name}\n{hashlib.sha256(source.read()).hexdigest()}\n".encode("utf-8", "replace"))
    return hashed.hexdigest()[:16]


def environment(functions: Sequence[Mapping[str, Any]], folders: Sequence[str]) -> Dict[str, str]:
    """What must be equal in all workers: results are a function of these, too."""
    found = {"python": platform.python_version(), "numpy": np.__version__}
    for name in ("torch", "torchvision", "albumentations", "cv2", "PIL"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    for spec in functions:
        found[f"module {spec['module']}"] = hash_of(spec["module"])
    beside = {os.path.dirname(file_of(spec["module"]) or "") for spec in functions}
    found["modules beside them"] = hash_beside(sorted(beside.union(folders)))
    return found


def use_one_thread() -> None:
    """An interpreter is one of many: libraries that were imported must not start threads of their own."""
    torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
    if torch is not None:
        torch.set_num_threads(1)
    if cv2 is not None:
        cv2.setNumThreads(0)


class Numbers:
    """Of one call: Philox whose key is (seed, epoch), and whose counter begins at (0, view, sample, position)."""

    def __init__(self) -> None:
        self._bits = np.random.Philox(key=np.zeros(2, np.uint64))
        self._state: Any = self._bits.state
        self._generator = np.random.Generator(self._bits)

    def begin(self, request: Request) -> np.random.Generator:
        state = self._state
        state["state"]["key"][:] = (request.seed, request.epoch)
        state["state"]["counter"][:] = (0, request.view, request.sample, request.position)
        state["buffer_pos"], state["has_uint32"], state["uinteger"] = 4, 0, 0
        self._bits.state = state
        return self._generator


def check_result(result: Any, shape: Sequence[int]) -> "np.ndarray[Any, Any]":
    """Its picture. TypeError or ValueError say what is wrong with it."""
    wanted = f"outputs says uint8 {list(shape)}"
    if not isinstance(result, dict):
        raise TypeError(f"returned {type(result).__name__} in the place of a dict with 'image'")
    if set(result) != {"image"}:
        names = sorted(map(str, result))
        raise ValueError(f"returned {names}, but outputs names 'image' alone; leave the others out")
    image = result["image"]
    if not isinstance(image, np.ndarray):
        kind = f"{type(image).__module__}.{type(image).__name__}"
        raise TypeError(f"returned image as {kind}, not numpy.ndarray; {wanted}")
    if image.dtype != np.uint8 or image.shape != tuple(shape):
        raise ValueError(f"returned image as {image.dtype} {list(image.shape)}, but {wanted}")
    return image


class Interpreter:
    """Answers the requests of one thread of the worker."""

    def __init__(
        self, connection: socket.socket, functions: List[Function], specs: Sequence[Mapping[str, Any]], patience: float
    ) -> None:
        self._pid = os.getpid()
        self._patience = patience
        self._connection = connection
        self._functions = functions
        self._specs = specs
        self._numbers = Numbers()
        self._memory: Optional[mmap.mmap] = None

    def serve(self) -> NoReturn:
        self._connection.send(struct.pack("<Q", os.getpid()))
        while True:
            message = self._connection.recv(REQUEST.size)
            if len(message) != REQUEST.size:
                os._exit(0)
            request = Request(*REQUEST.unpack(message))
            if request.kind == MEMORY:
                _, files, _, _ = socket.recv_fds(self._connection, 1, 1)
                os.set_inheritable(files[0], False)
                # What a function may have kept of the earlier memory stays valid.
                self._memory = mmap.mmap(files[0], request.memory_bytes)
                os.close(files[0])
                continue
            began = time.process_time_ns()
            # Nobody waits any more, and nobody may be left to end this process.
            signal.setitimer(signal.ITIMER_REAL, self._patience)
            code, text = self._call(request)
            signal.setitimer(signal.ITIMER_REAL, 0)
            reply = REPLY.pack(request.number, time.process_time_ns() - began, code)
            self._connection.send(reply + text.encode("utf-8", "replace")[:MOST_TEXT])

    def _call(self, request: Request) -> Tuple[int, str]:
        spec = self._specs[request.function]
        module = spec["module"]
        assert self._memory is not None
        shape = (request.height, request.width, request.channels)
        image: Any = np.frombuffer(self._memory, np.uint8, math.prod(shape)).reshape(shape)
        random = self._numbers.begin(request) if request.training else None
        try:
            result = self._functions[request.function]({"image": image}, random)
        except SystemExit as error:
            os._exit(error.code if isinstance(error.code, int) else 1)
        except BaseException as error:
            self._end_if_forked()
            return self._failure(error, request, module)
        self._end_if_forked()
        try:
            made = check_result(result, spec["shape"])
        except (TypeError, ValueError) as error:
            return WRONG_RESULT, str(error)
        place: Any = np.frombuffer(self._memory, np.uint8, made.size, request.result_at)
        np.copyto(place.reshape(made.shape), made)
        return DONE, ""

    def _end_if_forked(self) -> None:
        """A process that the function has forked came back from it: what is shared is not its own."""
        if os.getpid() != self._pid:
            os._exit(1)

    def _failure(self, error: BaseException, request: Request, module: str) -> Tuple[int, str]:
        text = reason(error, module)
        short = isinstance(error, (RuntimeError, *_opencv_errors())) and any(w in text.lower() for w in SHORTAGES)
        if short or isinstance(error, (MemoryError, OSError)):
            return RETRY, text
        return RAISED, text if request.training else f"{text}; of a validation sample, for which rng is None"


def _opencv_errors() -> Tuple[Any, ...]:
    error = getattr(sys.modules.get("cv2"), "error", None)
    return () if error is None else (error,)


def fork(
    connection: socket.socket, control: socket.socket, functions: List[Function], request: Mapping[str, Any]
) -> None:
    parent = os.getpid()
    try:
        if os.fork() != 0:
            return
    except OSError as error:  # the worker sees that its end is closed
        print(f"no interpreter: {error}", file=sys.stderr)
        return
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)
        control.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.register_at_fork(after_in_child=connection.close)
        # Where memory is short this process goes first: its sample is tried again.
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        pass
    try:
        Interpreter(connection, functions, request["functions"], request["patience"]).serve()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def main(control: socket.socket) -> int:
    request = json.loads(control.recv(1 << 20))
    if sys.version_info < (3, 9):  # noqa: UP036 (whoever runs it has not installed the package)
        text = f"{sys.executable} is Python {platform.python_version()}, but 3.9 or newer is needed"
        control.send(json.dumps({"error": text, "index": 0}).encode())
        return 1
    specs = request["functions"]
    sys.path[:0] = request["path"]
    # Modules that draw numbers when they are imported have the same in all workers.
    random.seed(0)
    np.random.seed(0)
    try:
        functions = [load(index, spec) for index, spec in enumerate(specs)]
        use_one_thread()
        answer = {"environment": environment(specs, request["path"])}
    except Unusable as error:
        control.send(json.dumps({"error": str(error)[:4000], "index": error.index}).encode())
        return 1
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        print(
            f"importing the Python operators started {threads - 1} threads, which no interpreter has", file=sys.stderr
        )
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how an interpreter ended
    control.send(json.dumps(answer).encode())
    while True:
        message, files, _, _ = socket.recv_fds(control, 1, 1)
        if not message:
            os.killpg(0, signal.SIGKILL)  # with all that functions have started
        for file in files:
            os.set_inheritable(file, False)
            with socket.socket(fileno=file) as connection:
                fork(connection, control, functions, request)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started the job
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.set_inheritable(int(sys.argv[1]), False)
    os.dup2(2, 1)  # what functions print goes where the worker logs
    raise SystemExit(main(socket.socket(fileno=int(sys.argv[1]))))
