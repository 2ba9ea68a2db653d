"""Epochs, their batches and validation passes of a real stream."""

import threading
import time

import numpy as np
import pytest

import hetero


def ids_of(batches):
    return np.concatenate([np.asarray(batch.ids) for batch in batches]).tolist()


def test_every_sample_once_in_each_epoch(open_stream):
    stream = open_stream()
    assert (stream.rank, stream.world_size, stream.total_steps, stream.steps_per_epoch) == (0, 1, 39, 13)
    assert (stream.samples, stream.classes, stream.validation_samples, stream.seed) == (100, 4, 21, 5)
    assert len(stream) == 13
    orders = []
    for epoch in stream.epochs():
        assert len(epoch) == 13
        assert f"{epoch}" == str(int(epoch)) == str(len(orders))
        batches = list(epoch)
        assert len(batches) == 13
        orders.append(ids_of(batches))
        assert sorted(orders[-1]) == list(range(100))
        assert [batch.count for batch in batches] == [8] * 12 + [4]
        assert [batch.step for batch in batches] == [13 * int(epoch) + i for i in range(13)]
        assert [batch.place.first_slot for batch in batches] == [8 * i for i in range(13)]
        assert [batch.place.last_of_epoch for batch in batches] == [False] * 12 + [True]
        assert all(batch.weight == 1 for batch in batches)  # one rank has the whole step
    assert len(orders) == 3
    assert len({tuple(order) for order in orders}) == 3  # each epoch has an order of its own
    assert stream.step == 39
    assert list(stream.epochs()) == list(stream) == []


def test_iter_is_one_epoch(open_stream):
    stream = open_stream(overrides={"training.maxSteps": 20})
    assert [len(list(stream)) for _ in range(3)] == [13, 7, 0]


def test_an_epoch_cannot_be_skipped(open_stream):
    stream = open_stream()
    with pytest.raises(hetero.MisuseError, match="no batch of epoch 0 was asked for"):
        for epoch in stream.epochs():
            if int(epoch) < 1:
                continue
    assert next(iter(stream)).step == 0


def test_an_epoch_is_read_once(open_stream):
    stream = open_stream()
    epoch = next(stream.epochs())
    assert len(list(epoch)) == 13
    with pytest.raises(hetero.MisuseError, match="epoch 0 is over"):
        list(epoch)
    assert next(iter(stream)).step == 13  # nothing was lost by it


def test_an_epoch_that_was_left_goes_on(open_stream):
    stream = open_stream()
    first = []
    for batch in stream:
        first.append(batch)
        if len(first) == 5:
            break
    rest = next(stream.epochs())
    assert (int(rest), len(rest)) == (0, 8)
    assert sorted(ids_of(first + list(rest))) == list(range(100))
    assert int(next(stream.epochs())) == 1


def test_a_batch_has_names(open_stream):
    batch = next(iter(open_stream()))
    images, labels = batch
    assert list(batch.keys()) == ["image", "label"]
    assert batch["image"] is batch.image is batch[0] is images
    assert batch["label"] is labels
    assert images.shape == (8, 3, 12, 10) and labels.shape == (8,) and labels.dtype == np.int64
    assert set(dict(batch)) == {"image", "label"}
    with pytest.raises(KeyError, match="no field 'mask': this batch has image, label"):
        batch["mask"]
    with pytest.raises(AttributeError, match="mask"):
        getattr(batch, "mask")  # noqa: B009
    assert "step 0" in repr(batch)


def test_validation_beside_training(open_stream):
    stream = open_stream()
    loop = iter(stream)
    next(loop)
    passes = []
    for _ in range(2):
        batches = list(stream.validation())
        assert sum(batch.count for batch in batches) == 21
        assert all(batch.place.validation for batch in batches)
        passes.append((ids_of(batches), np.concatenate([batch.image for batch in batches])))
    assert sorted(passes[0][0]) == list(range(21))
    assert passes[0][0] == passes[1][0]
    assert np.array_equal(passes[0][1], passes[1][1])
    assert len(stream.validation()) == 3
    assert next(loop).step == 1  # training stood still


def test_a_validation_pass_may_be_left(open_stream):
    stream = open_stream()
    assert next(stream.validation()).count == 8
    assert sum(batch.count for batch in stream.validation()) == 21
    assert next(iter(stream)).step == 0


def test_no_validation_set(open_stream, manifest):
    stream = open_stream(job=manifest(lambda spec: spec["dataset"].pop("validation")))
    assert list(stream.validation()) == [] and len(stream.validation()) == 0


def test_two_loops_and_two_threads_are_refused(open_stream):
    stream = open_stream()
    one = iter(stream)
    next(one)
    other = iter(stream)
    assert next(other).step == 1
    with pytest.raises(hetero.MisuseError, match="one loop at a time"):
        next(one)
    said = []

    def read():
        try:
            next(other)
        except hetero.MisuseError as error:
            said.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert "two threads" in said[0]
    assert next(other).step == 2


def test_gradient_accumulation(open_stream):
    """Batches are parts of a step; a state is taken at its end."""
    stream = open_stream(overrides={"training.gradientAccumulationSteps": 2})
    assert (stream.accumulation, stream.steps_per_epoch, len(stream)) == (2, 7, 14)
    batches = []
    for batch in stream:
        batches.append((batch.step, batch.place.micro))
        if batch.place.last_of_step:
            assert stream.state_dict()["step"] == batch.step + 1
        else:
            assert not stream.should_checkpoint()
            with pytest.raises(hetero.MisuseError, match="end of a step: this is batch 1 of 2"):
                stream.state_dict()
    assert batches == [(step, micro) for step in range(7) for micro in range(2)]


def test_without_a_job():
    with pytest.raises(hetero.MisuseError, match=r"training\.script"):
        hetero.Stream()
    with pytest.raises(hetero.MisuseError, match="no manifest"):
        hetero.Stream("/nowhere/job.yaml")


def ahead(stream):
    """As on a GPU, with the copies left out: batches are taken before they are asked for."""
    stream._batches.views.ahead = 2
    return stream


def test_fetched_ahead(open_stream):
    """What was fetched and not looked at is not done: state, checkpoints and order are those of the loop."""
    plain = [ids for epoch in open_stream().epochs() for ids in (np.asarray(batch.ids).tolist() for batch in epoch)]
    stream, seen, most = ahead(open_stream()), [], 0
    for epoch in stream.epochs():
        for batch in epoch:
            seen.append(np.asarray(batch.ids).tolist())
            end = time.monotonic() + 30
            while batch.step == 3 and len(stream._batches.fetched) < 2 and time.monotonic() < end:
                stream._batches.fetch_ahead(batch.place)  # as at the next batch
            most = max(most, len(stream._batches.fetched))
            if batch.step % 5 == 0:
                state = stream.state_dict()
                assert state["step"] == batch.step + 1 == stream.step
            assert not stream.should_checkpoint() or batch.step == 38
            if batch.step == 20:
                assert sum(part.count for part in stream.validation()) == 21
    assert seen == plain
    assert most == 2
    assert not stream._batches.fetched
    second = ahead(open_stream())
    second.load_state_dict(state)
    rest = [np.asarray(batch.ids).tolist() for epoch in second.epochs() for batch in epoch]
    assert rest == plain[state["step"] :]
    assert second.state_dict() == stream.state_dict()


@pytest.mark.parametrize("error", (MemoryError, RuntimeError, KeyboardInterrupt))
def test_no_batch_is_lost_while_it_is_fetched_ahead(open_stream, error):
    stream = ahead(open_stream())
    connection, views, seen, made, caught = stream._batches._connection, stream._batches.views, [], 0, 0
    arrays, ask_ahead = views.arrays, connection.ask_ahead

    def failing(owners, fields):
        nonlocal made
        made += 1
        if made % 5 == 0:
            raise error("once in five")
        return arrays(owners, fields)

    def patient(message):
        end = time.monotonic() + 30
        while not ask_ahead(message) and time.monotonic() < end:
            time.sleep(0.001)
        return ask_ahead(message)

    views.arrays, connection.ask_ahead = failing, patient
    loop = iter(stream)
    while True:
        try:
            batch = next(loop)
        except error:
            caught += 1
            assert stream.step == len(seen)
            continue
        except StopIteration:
            break
        seen.append(batch)
        assert stream.step == len(seen) == batch.step + 1
    assert caught > 2
    ids = np.concatenate([np.asarray(batch.ids) for batch in seen])
    assert sorted(ids[:100].tolist()) == list(range(100))


def test_a_validation_pass_that_was_interrupted_leaves_nothing_for_the_next(open_stream):
    """Ctrl-C came while a batch of it was awaited, or made into arrays."""
    stream = open_stream()
    batches = stream._batches
    arrays = batches.views.arrays

    def interrupted(owners, fields):
        raise KeyboardInterrupt

    for turn in range(12):  # more often than there are slots
        loop = stream.validation()
        if turn % 3:
            next(loop)
        if turn % 2:
            batches._connection.ask_ahead({"type": "next", "validation": True})
        else:
            batches.views.arrays = interrupted
            with pytest.raises(KeyboardInterrupt):
                next(loop)
            batches.views.arrays = arrays
        whole = list(stream.validation())
        assert sorted(ids_of(whole)) == list(range(21)), turn
