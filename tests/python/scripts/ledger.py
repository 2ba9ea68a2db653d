"""A script with numpy alone: trains a linear model, checkpoints it with what it was trained on, and goes on from there.

    ledger.py [--crash STEP:RANK ...] [--pause SECONDS]

Its checkpoint holds the list of batches that the weights have seen, so that at the end the list says what the model was
really trained on, whatever befell the script. A crash happens once.
"""

import argparse
import os
import pathlib
import pickle
import time

import hetero
import numpy as np

from proof.record import Journal, entry_of

parser = argparse.ArgumentParser()
parser.add_argument("--crash", nargs="*", default=[])
parser.add_argument("--pause", type=float, default=0.0)
arguments = parser.parse_args()

stream = hetero.Stream(raw=True)
records = pathlib.Path(os.environ["PROOF_RECORDS"])
batches = Journal("batches", stream.rank)
states = Journal("states", stream.rank)
starts = Journal("starts", stream.rank)
crashes = {int(step) for step, rank in (word.split(":") for word in arguments.crash) if int(rank) == stream.rank}


def path_of(step, rank):
    return records / f"checkpoint-{step:06d}-{rank}"


def newest():
    """Of the steps that all ranks have saved."""
    steps = [int(path.name.split("-")[1]) for path in records.glob("checkpoint-*-0")]
    whole = [step for step in steps if all(path_of(step, rank).exists() for rank in range(stream.world_size))]
    return pickle.loads(path_of(max(whole), stream.rank).read_bytes()) if whole else None


def save():
    state = stream.state_dict()
    states.write(**state)
    temporary = records / f"temporary-{stream.rank}"
    temporary.write_bytes(pickle.dumps({"weights": weights, "trained": trained, "stream": state}))
    temporary.rename(path_of(state["step"], stream.rank))


weights, trained = None, []
if saved := newest():
    weights, trained = saved["weights"], saved["trained"]
    stream.load_state_dict(saved["stream"])
starts.write(restart=stream.restart_count, step=saved["stream"]["step"] if saved else 0, pid=os.getpid())
for epoch in stream.epochs():
    for batch in epoch:
        entry = entry_of(batch)
        batches.write(restart=stream.restart_count, **entry)
        images, labels = batch
        rows = np.asarray(images, dtype=np.float64).reshape(len(labels), -1) / 255
        if weights is None:
            weights = np.zeros((rows.shape[1], stream.classes))
        scores = np.exp(rows @ weights)
        errors = scores / scores.sum(axis=1, keepdims=True) - np.eye(stream.classes)[labels]
        weights -= 0.01 * batch.weight * rows.T @ errors / max(1, len(labels))
        trained.append(entry)
        if stream.should_checkpoint():
            save()
        if batch.step in crashes:
            mark = records / f"crashed-{batch.step}-{stream.rank}"
            if not mark.exists():
                mark.touch()
                raise RuntimeError(f"the script's own fault at step {batch.step}")
        time.sleep(arguments.pause)
final = Journal("trained", stream.rank, final=True)
for entry in trained:
    final.write(**entry)
Journal("weights", stream.rank, final=True).write(sum=float(weights.sum()), bytes=weights.tobytes().hex()[:4096])
stream.close()
