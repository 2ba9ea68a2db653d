"""Prints the scalars of TensorBoard event files as JSON: {"reader": ..., "scalars": [[tag, step, value], ...]}.

    python read_events.py FILE...

With TensorBoard installed its own reader is used; otherwise the one below, which checks every checksum too.
"""

import json
import struct
import sys


def crc32c(data):
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def checked(data, stored):
    crc = crc32c(data)
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    if masked != struct.unpack("<I", stored)[0]:
        raise ValueError("checksum differs")
    return data


def records(path):
    with open(path, "rb") as file:
        while header := file.read(8):
            length = struct.unpack("<Q", checked(header, file.read(4)))[0]
            yield checked(file.read(length), file.read(4))


def fields(message):
    """(number, value) of a protobuf message: integers, bytes for everything that has a length or a fixed width."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        length = {1: 8, 5: 4}.get(key & 7) or varint()
        yield key >> 3, message[at:at + length]
        at += length


def own_reader(path):
    scalars = []
    for number, record in enumerate(records(path)):
        event = list(fields(record))
        if number == 0 and dict(event).get(3) != b"brain.Event:2":
            raise ValueError("the first record is no file version")
        step = dict(event).get(2, 0)
        for summary in (value for key, value in event if key == 5):
            for value in (dict(fields(v)) for key, v in fields(summary) if key == 1):
                scalars.append([value[1].decode(), step, struct.unpack("<f", value[2])[0]])
    return scalars


def tensorboard_reader(path):
    from tensorboard.backend.event_processing import event_accumulator

    accumulator = event_accumulator.EventAccumulator(path, size_guidance={event_accumulator.TENSORS: 0,
                                                                          event_accumulator.SCALARS: 0})
    accumulator.Reload()
    return [[tag, event.step, event.value]
            for tag in accumulator.Tags()["scalars"] for event in accumulator.Scalars(tag)]


def main():
    try:
        import tensorboard.backend.event_processing.event_accumulator  # noqa: F401
        reader, name = tensorboard_reader, "tensorboard"
    except ImportError:
        reader, name = own_reader, "own"
    scalars = [scalar for path in sys.argv[1:] for scalar in reader(path)]
    print(json.dumps({"reader": name, "scalars": sorted(scalars)}))


if __name__ == "__main__":
    sys.exit(main())
