"""A machine that misbehaves under the programs of one round: see bad_machine.cpp, which is preloaded into them."""
import mmap
import os
import struct


class Machine:
    """The switches of one round. They may be moved at any time, and hold for all its programs at once."""
    FIELDS = ("clock_offset_ns", "sync_delay_ms", "disk_full")

    def __init__(self, library, folder):
        self.library, self.folder = library, folder
        self.path = f"{folder}/machine"
        with open(self.path, "wb") as file:
            file.write(bytes(8 * len(self.FIELDS)))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.offset_seconds = 0

    def environment(self):
        return {**os.environ, "LD_PRELOAD": self.library, "HETERO_CHAOS_MACHINE": self.path,
                "HETERO_CHAOS_FOLDER": self.folder}

    def set(self, field, value):
        struct.pack_into("<q", self.memory, 8 * self.FIELDS.index(field), value)

    def step_clock(self, seconds):
        """The wall clock jumps, forth or back."""
        self.offset_seconds += seconds
        self.set("clock_offset_ns", int(self.offset_seconds * 1e9))
