"""Takes its batches as any script does, with numpy alone: the ranks take each step together, rank 0 saves, all load,
and each keeps which samples it was given at each step.

    consume.py FOLDER [--kill STEP:RANK] [--fail STEP]

--kill: SIGKILL at that step, once. --fail: an exception there, always.
"""

import argparse
import json
import os
import pathlib
import signal
import socket
import struct
import time

import hetero
import numpy

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--kill", default="")
parser.add_argument("--fail", type=int, default=-1)
arguments = parser.parse_args()



class Group:
    """The ranks, where torchrun's variables say they are. A rank that is gone is an error in all others, as in any
    library that sums gradients."""

    def __init__(self, rank, size):
        self.rank = rank
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        if rank == 0:
            with socket.create_server(("", address[1])) as server:
                self.peers = [server.accept()[0] for _ in range(size - 1)]
            return
        end = time.monotonic() + 60
        while True:
            try:
                self.peers = [socket.create_connection(address, timeout=60)]
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def sum(self, value):
        if self.rank != 0:
            self._send(self.peers[0], value)
            return self._receive(self.peers[0])
        value += sum(self._receive(peer) for peer in self.peers)
        for peer in self.peers:
            self._send(peer, value)
        return value

    def _send(self, peer, value):
        peer.sendall(struct.pack("<d", value))

    def _receive(self, peer):
        data = b""
        while len(data) < 8:
            more = peer.recv(8 - len(data))
            if not more:
                raise ConnectionError("another rank is gone")
            data += more
        return struct.unpack("<d", data)[0]


stream = hetero.Stream()
group = Group(stream.rank, stream.world_size)
journal = open(arguments.folder / f"journal-{stream.rank}.jsonl", "a", buffering=1)
checkpoint = arguments.folder / "checkpoint.json"
if checkpoint.exists():
    stream.load_state_dict(json.loads(checkpoint.read_text()))
print(f"rank {stream.rank} of {stream.world_size} begins at step {stream.step} below {os.environ['HOME']}")
for epoch in stream.epochs():
    for batch in epoch:
        images, labels = batch
        assert images.dtype == numpy.float32 and len(images) == len(labels) == len(batch.ids)
        if batch.step == arguments.fail:
            raise ValueError(f"nothing fits at step {batch.step}")
        time.sleep(0.1)  # what a step of training takes
        journal.write(json.dumps({"epoch": batch.epoch, "step": batch.step, "ids": batch.ids.tolist()}) + "\n")
        stream.report(loss=group.sum(float(images.mean())) / stream.world_size)
        save = stream.should_checkpoint()
        if save and stream.rank == 0:
            temporary = checkpoint.with_suffix(".new")
            temporary.write_text(json.dumps(stream.state_dict()))
            temporary.rename(checkpoint)
        mark = arguments.folder / "killed"
        if f"{batch.step}:{stream.rank}" == arguments.kill and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
print(f"rank {stream.rank} has seen all")
