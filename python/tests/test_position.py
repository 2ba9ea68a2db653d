"""States of a stream: what they hold, where they lead, which are refused."""

import json

import numpy as np
import pytest

import hetero


def read(stream, steps):
    loop = iter(stream)
    return [np.asarray(next(loop).ids).tolist() for _ in range(steps)]


def test_a_state_counts_the_batch_in_hand(open_stream):
    stream = open_stream()
    assert stream.state_dict()["step"] == 0
    loop = iter(stream)
    next(loop)
    state = stream.state_dict()
    assert (state["format"], state["seed"], state["epoch"], state["step"], state["slot"]) == (1, 5, 0, 1, 8)
    assert state == json.loads(json.dumps(state))
    next(loop)
    assert stream.state_dict()["step"] == 2
    assert stream.state_dict()["digest"] != state["digest"]


@pytest.mark.parametrize("steps", [0, 5, 13, 20, 39])
def test_goes_on_where_it_was(open_stream, steps):
    whole, seen, state = open_stream(), [], None
    if not steps:
        state = whole.state_dict()
    for epoch in whole.epochs():
        for batch in epoch:
            seen.append(np.asarray(batch.ids).tolist())
            if batch.step + 1 == steps:
                state = whole.state_dict()
    second = open_stream()
    second.load_state_dict(state)
    assert second.state_dict() == state
    rest = [(int(epoch), len(epoch), [np.asarray(batch.ids).tolist() for batch in epoch]) for epoch in second.epochs()]
    assert [ids for _, _, batches in rest for ids in batches] == seen[steps:]
    assert all(length == len(batches) for _, length, batches in rest)
    assert [epoch for epoch, _, _ in rest] == list(range(steps // 13, 3))
    assert second.state_dict() == whole.state_dict()  # the digest, too


def test_another_order_is_refused(open_stream):
    first = open_stream()
    read(first, 2)
    state = first.state_dict()
    for overrides, reason in (
        ({"training.seed": 6}, "seed"),
        ({"dataset.samples": 99}, "data"),
        ({"training.batchSizePerWorker": 4}, "batch"),
    ):
        stream = open_stream(overrides=overrides)
        stream.load_state_dict(state)
        with pytest.raises(hetero.MisuseError, match=reason):
            next(iter(stream))


def test_too_late(open_stream):
    stream = open_stream()
    read(stream, 3)
    state = stream.state_dict()
    stream.load_state_dict(state)  # where it is already: frameworks do that
    with pytest.raises(hetero.MisuseError, match=r"has begun and is at step 3; a state \(of step 1\) is loaded"):
        stream.load_state_dict({**state, "step": 1})


@pytest.mark.parametrize("state", [{}, {"format": 2}, {"model": 1}])
def test_no_state(open_stream, state):
    with pytest.raises(hetero.MisuseError, match="no state of a stream"):
        open_stream().load_state_dict(state)


def test_when_to_save(open_stream, manifest, tmp_path):
    def every_five_steps(spec):
        spec["training"]["checkpoint"] = {"uri": f"file://{tmp_path}/checkpoints", "everySteps": 5}

    stream = open_stream(job=manifest(every_five_steps))
    assert stream.checkpoint_uri == f"file://{tmp_path}/checkpoints"
    assert not stream.should_checkpoint()
    due = []
    for epoch in stream.epochs():
        for batch in epoch:
            if stream.should_checkpoint():
                due.append(batch.step + 1)
            assert stream.should_checkpoint() == stream.should_checkpoint()
    assert due == [5, 10, 15, 20, 25, 30, 35, 39]


def test_reported_numbers(open_stream, tmp_path):
    stream = open_stream()
    for batch in stream:
        stream.report(loss=np.float32(batch.step), accuracy=0.5, steps=batch.step, bad=float("nan"))
    for wrong in ("text", np.zeros(2), None, True):
        with pytest.raises(hetero.MisuseError, match="'loss'"):
            stream.report(loss=wrong)
    with pytest.raises(hetero.MisuseError, match="64"):
        stream.report(**{f"n{i}": i for i in range(65)})
    assert next(batch.step for batch in stream) == 13
