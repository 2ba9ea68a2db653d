"""Functions for Python operators. Sample `i` of the tests is a picture in which each pixel is `i`, so that a function
knows whom it has."""

import os
import pathlib
import signal
import time

import numpy as np

SHAPE = (6, 5, 3)
calls = 0


def number_of(sample):
    return int(sample["image"][0, 0, 0])


def noise(sample, rng):
    """The sample's number, and what its random numbers say."""
    image = rng.integers(0, 256, SHAPE, dtype=np.uint8)
    image[0] = sample["image"][0, 0, 0]
    return {"image": image}


def plain(sample, rng):
    """Without random numbers, so that validation may use it."""
    return {"image": np.full(SHAPE, number_of(sample), np.uint8)}


def first(kind, sample):
    """Whether `kind` happens to this sample for the first time, over all processes."""
    folder = os.environ.get("OPERATORS_MARKS")
    if folder is None:
        return True
    try:
        (pathlib.Path(folder) / f"{kind}-{number_of(sample)}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def strange(sample, rng):
    """Ends, is killed, has no memory or finds a disk that fails, the first time; always writes to what it was given."""
    what = number_of(sample) % 16
    if what == 3 and first("exit", sample):
        raise SystemExit(3)
    if what == 5 and first("kill", sample):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == 7 and first("memory", sample):
        raise MemoryError("not enough")
    if what == 9 and first("disk", sample):
        raise OSError("the disk does not answer")
    if what == 11 and first("state", sample):
        raise ValueError("only now")
    made = noise(sample, rng)
    sample["image"][:] = 255 - sample["image"]
    return made


def raises(sample, rng):
    if number_of(sample) == 17:
        raise ValueError("cannot take seventeen")
    return noise(sample, rng)


def kills(sample, rng):
    if number_of(sample) == 17:
        os.kill(os.getpid(), signal.SIGKILL)
    return noise(sample, rng)


def hangs(sample, rng):
    if number_of(sample) == 17 and first("hang", sample):
        time.sleep(3600)
    return noise(sample, rng)


def other_shape(sample, rng):
    return {"image": np.zeros((6, 5, 4), np.uint8)}


def other_type(sample, rng):
    return {"image": np.zeros(SHAPE, np.float32)}


def other_names(sample, rng):
    return {"image": np.zeros(SHAPE, np.uint8), "depth": 1}


def no_dict(sample, rng):
    return np.zeros(SHAPE, np.uint8)


def global_state(sample, rng):
    global calls
    calls += 1
    return {"image": np.full(SHAPE, calls % 251, np.uint8)}


def other_numbers(sample, rng):
    return {"image": np.random.default_rng().integers(0, 256, SHAPE, dtype=np.uint8)}


def clock(sample, rng):
    return {"image": np.full(SHAPE, time.monotonic_ns() // 1000 % 251, np.uint8)}


def forks(sample, rng):
    """Some samples are made with a child that comes back from the function, too, and says something else."""
    if rng.random() < 0.2 and os.fork() == 0:
        time.sleep(0.005)
        return {"image": np.zeros(SHAPE, np.uint8)}
    return noise(sample, rng)


def mistaken(sample, rng):
    return {"image": not_defined_anywhere}  # noqa: F821 (that is the mistake)


def secrets(sample, rng):
    hidden = ("HETERO_TLS", "HETERO_STORAGE", "HETERO_HEAD", "AWS_SECRET", "AWS_SESSION")
    names = sorted(name for name in os.environ if name.startswith(hidden))
    assert not names, names
    assert os.environ["OMP_NUM_THREADS"] == "1"
    return noise(sample, rng)
