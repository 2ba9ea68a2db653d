"""Holds batches, lets go of them in a random order from several threads and after forks, and looks at their bytes.

    hold.py [--framework torch] [--forks N] [--digest]

Bytes of a batch that is held may never change, whatever comes after it; writing into one is not seen in another. The
job's digest is taken from the bytes as they were received.
"""

import argparse
import gc
import json
import os
import pathlib
import queue
import random
import threading
import zlib

parser = argparse.ArgumentParser()
parser.add_argument("--framework", choices=["numpy", "torch"], default="numpy")
parser.add_argument("--forks", type=int, default=0)
parser.add_argument("--digest", action="store_true")
arguments = parser.parse_args()
if arguments.framework == "torch":
    import torch  # before hetero.Stream(): batches are tensors

import hetero
import numpy as np

from proof.digest import crc32c, stream_digest

stream = hetero.Stream(raw=True)
chance = random.Random(stream.rank)
most = max(2, stream.may_hold // 2) if hasattr(stream, "may_hold") else 4
faults, received, crcs, places, batches = [], [], [], [], 0
to_let_go = queue.Queue(maxsize=most)


def add_crcs():
    if received:
        crcs.extend(crc32c(np.concatenate(received)).tolist())
        received.clear()


def bytes_of(images):
    return zlib.crc32(np.ascontiguousarray(images))


def view_of(images):
    """One of the ways in which a script keeps a batch."""
    way = chance.randrange(4)
    if way == 0:
        return images
    if way == 1:
        return images.reshape(-1)[:0], images  # an empty view keeps nothing alive that is not in the tuple
    if way == 2:
        return images[:, ::2, :, 1:], images.reshape(len(images), -1)
    return torch.from_dlpack(images) if arguments.framework == "torch" else np.from_dlpack(images)


def whole(view):
    return view if not isinstance(view, tuple) else view[-1]


def check(step, view, expected):
    if bytes_of(whole(view)) != expected:
        faults.append(f"step {step}: the bytes of a batch that was held have changed")


def let_go():
    while (item := to_let_go.get()) is not None:
        check(*item)
        del item


threads = [threading.Thread(target=let_go) for _ in range(3)]
for thread in threads:
    thread.start()
held = []
for epoch in stream.epochs():
    for batch in epoch:
        images, labels = batch
        batches += 1
        expected = bytes_of(images)
        if arguments.digest:
            received.append(np.array(images).reshape(len(images), -1))
            if len(received) == 1000:
                add_crcs()
            places.append((batch.epoch, batch.step, batch.place.first_slot, np.asarray(batch.ids).tolist()))
        if chance.random() < 0.05:
            images[:] = 255 - images  # its bytes are the script's own
            expected = bytes_of(images)
        held.append((batch.step, view_of(images), expected))
        del images, labels, batch
        if arguments.forks and chance.random() < arguments.forks / stream.total_steps:
            child = os.fork()
            if child == 0:
                copy = list(held)
                held.clear()
                bad = sum(bytes_of(whole(view)) != crc for _, view, crc in copy)
                del copy
                gc.collect()  # a child's views free nothing of the parent's
                os._exit(1 if bad else 0)
            if chance.random() < 0.5:
                held.clear()  # while the child still looks at them
            if os.waitpid(child, 0)[1]:
                faults.append("a child saw other bytes")
        while len(held) >= most or (held and chance.random() < 0.5):
            item = held.pop(chance.randrange(len(held)))
            if chance.random() < 0.5:
                to_let_go.put(item)
            else:
                check(*item)
            del item
for item in held:
    check(*item)
for _ in threads:
    to_let_go.put(None)
for thread in threads:
    thread.join()
result = {"batches": batches, "faults": faults}
if arguments.digest:
    add_crcs()
    samples, at = [], 0
    for epoch, step, slot, ids in places:
        samples += [(epoch, step, slot + i, number, crcs[at + i]) for i, number in enumerate(ids)]
        at += len(ids)
    result["digest"] = stream_digest(stream.seed, samples)
(pathlib.Path(os.environ["PROOF_RECORDS"]) / f"result-{stream.rank}").write_text(json.dumps(result))
stream.close()
