"""Batches are views of the agent's memory, which stays as it is for as long as one of them lives."""

import gc
import os
import threading
import time

import numpy as np
import pytest

import hetero

MANY = {"dataset.samples": 4000}  # in one epoch
# So large that a CPU worker of this machine puts them into memory that the script maps, too.
LARGE = {**MANY, **{f"dataset.{of}image.{side}": 64 for of in ("", "validation.") for side in ("height", "width")}}

pictures = pytest.mark.parametrize("pictures", [MANY, LARGE], ids=["small", "large"])


def held(stream):
    gc.collect()
    return len(stream._batches.arena.held())


def test_a_slot_is_free_when_its_last_view_is_gone(open_stream):
    stream = open_stream(raw=True)
    loop = iter(stream)
    batch = next(loop)
    corner = batch["image"][2:3, 1:, :4, 0]
    row = corner[0]
    copy = corner.copy()
    assert held(stream) == 1
    del batch, corner
    assert held(stream) == 1
    assert np.array_equal(row, copy[0])
    del row
    assert held(stream) == 0
    batch = next(loop)
    labels, ids = batch["label"], batch.ids  # copies
    del batch
    assert held(stream) == 0
    assert labels.shape == ids.shape == (8,)


def test_large_pictures_stay_where_the_worker_has_put_them(open_stream):
    stream = open_stream(raw=True, overrides=LARGE)
    files = stream._batches.arena._files
    for batch in (batch for epoch in stream.epochs() for batch in epoch):
        assert batch.image.shape == (8, 64, 64, 3)
        del batch
        if files:  # a worker may hear of them later than of the first tickets
            break
    assert 1 <= len(files) <= 2  # one for each CPU worker
    assert held(stream) == 0


@pictures
def test_bytes_do_not_change_while_they_are_held(open_stream, pictures):
    stream = open_stream(raw=True, overrides=pictures)
    loop = iter(stream)
    kept = [next(loop) for _ in range(5)]
    before = [batch.image.copy() for batch in kept]
    for _ in range(20):
        next(loop)
    for batch, bytes_of_it in zip(kept, before):
        assert np.array_equal(batch.image, bytes_of_it)


@pictures
def test_in_place_operations(open_stream, pictures):
    stream = open_stream(raw=True, overrides=pictures)
    loop = iter(stream)
    one, two = next(loop), next(loop)
    other = two.image.copy()
    image = one.image
    image[:] = 255
    image //= 2
    assert (one.image == 127).all() and np.array_equal(two.image, other)


@pictures
def test_any_order_and_any_thread(open_stream, pictures):
    stream = open_stream(raw=True, overrides=pictures)
    loop = iter(stream)
    for _ in range(4):
        batches = [next(loop) for _ in range(5)]
        threads = [threading.Thread(target=batches.pop) for _ in batches[1:]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del batches
        assert held(stream) == 0
    assert stream.step == 20


@pictures
def test_a_child_keeps_what_it_saw(open_stream, pictures):
    stream = open_stream(raw=True, overrides=pictures)
    loop = iter(stream)
    batch = next(loop)
    expected = batch.image.tobytes()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.read(read_end, 1)  # until the parent has let go and read on
        os._exit(0 if batch.image.tobytes() == expected else 1)
    os.close(read_end)
    del batch
    assert held(stream) == 1  # the child's
    for _ in range(20):
        next(loop)
    assert held(stream) == 1
    os.close(write_end)
    assert os.waitpid(child, 0)[1] == 0
    next(loop)
    assert held(stream) == 0


def test_threads_that_fork_at_once(open_stream):
    """What one thread's fork watches its child by stays open while another thread's fork is over."""
    stream = open_stream(raw=True)
    batch = next(iter(stream))
    arena = stream._batches.arena
    thread = threading.Thread(target=arena.before_fork)  # is about to fork
    thread.start()
    thread.join()
    arena.before_fork()
    arena.after_fork_in_parent()
    del batch
    arena.look_after_forks()
    assert held(stream) == 1  # for the child that is yet to come
    for fork in arena._forks:
        fork.close_write_end()
    arena.look_after_forks()
    assert held(stream) == 0


def test_a_child_cannot_read(open_stream):
    stream = open_stream()
    loop = iter(stream)
    next(loop)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            next(loop)
        except hetero.MisuseError as error:
            os.write(write_end, str(error).encode())
        os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    assert b"num_workers=0" in os.read(read_end, 4096)
    os.close(read_end)
    assert next(loop).step == 1


@pictures
def test_waiting_for_a_child_that_holds_everything(open_stream, pictures):
    """A read blocks while children hold all that there is, and goes on when they end."""
    stream = open_stream(raw=True, overrides=pictures)
    loop = iter(stream)
    batches = [next(loop) for _ in range(stream.may_hold)]
    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        os._exit(0)
    del batches
    assert held(stream) == stream.may_hold
    assert next(loop).step == stream.may_hold
    os.waitpid(child, 0)
    assert held(stream) == 0


@pictures
def test_arrays_outlive_the_stream(open_stream, pictures):
    stream = open_stream(raw=True, overrides=pictures)
    image = next(iter(stream)).image
    before = image.copy()
    stream.close()
    time.sleep(0.2)  # the agent has time to do what it may not
    assert np.array_equal(image, before)
    with pytest.raises(hetero.StreamFailed, match="closed"):
        next(iter(stream))
