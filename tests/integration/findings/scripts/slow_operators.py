"""Functions for Python operators that cost what their names say, in CPU time."""

import time


def slow(sample, rng):
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        sum(range(500))
    return {"image": sample["image"]}


def quick(sample, rng):
    return {"image": sample["image"]}
