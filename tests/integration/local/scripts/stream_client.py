"""A script's end of the stream in the standard library alone, written from runtime/agent/stream_protocol.h."""

import array
import json
import mmap
import os
import socket
import struct


class Stopped(Exception):
    pass


class Refused(Exception):
    pass


class Stream:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(120)
        self.socket.connect(os.environ["HETERO_STREAM_SOCKET"])
        self.descriptors = array.array("i")
        self.buffer = b""
        self.welcome = self.ask("hello", protocol=1, package="test", pid=os.getpid(), python="3", numpy="none")
        self.memory = mmap.mmap(self.descriptors[0], 0, mmap.MAP_SHARED, mmap.PROT_READ)

    def tell(self, kind, **fields):
        text = json.dumps({"type": kind, **fields}).encode()
        self.socket.sendall(struct.pack("<I", len(text)) + text)

    def ask(self, kind, **fields):
        self.tell(kind, **fields)
        size = struct.unpack("<I", self.read(4))[0]
        answer = json.loads(self.read(size))
        if answer["type"] == "error":
            raise (Stopped if answer["kind"] == "stopped" else Refused)(answer["kind"] + ": " + answer["message"])
        return answer

    def read(self, size):
        while len(self.buffer) < size:
            data, ancillary, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(16))
            if not data:
                raise Refused("the agent has closed the connection")
            for level, kind, content in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    self.descriptors.frombytes(content[: len(content) // 4 * 4])
            self.buffer += data
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def begin(self, state=None):
        return self.ask("begin", position=state)

    def batches(self):
        """(answer, ids of the samples), to the end of the stream."""
        while True:
            batch = self.ask("next")
            if batch["type"] == "end":
                return
            field = next(field for field in batch["fields"] if field["name"] == "id")
            place = batch["slot"] * self.welcome["slot_bytes"] + field["offset"]
            ids = struct.unpack_from("<%dq" % field["shape"][0], self.memory, place)
            yield batch, list(ids)
            self.tell("free", slot=batch["slot"])
