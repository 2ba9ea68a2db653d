"""The files that Python writes of torchvision's models, and our files against them.

    python torchvision_files.py write                # torchvision_files.json: needs torch, torchvision, safetensors
    python torchvision_files.py check MODEL FILE     # FILE holds our model: the same tensors as in Python's file?

Of each file, written by safetensors.torch.save_file with the weights of the formula (fill), the list keeps the header
as it is and a checksum of the whole, so that it can be put together again without Python. With safetensors installed
that library reads our file; otherwise the reader below does, which checks what the format demands.
"""

import json
import pathlib
import struct
import sys
import tempfile
import zlib

DIRECTORY = pathlib.Path(__file__).parent
LIST = DIRECTORY / "models" / "torchvision_files.json"
CLASSES, SIDE = 10, 32
BITS = {"F64": 64, "I64": 64, "F32": 32}


def write():
    import safetensors.torch
    import torchvision

    sys.path.insert(0, str(DIRECTORY))
    from make_model_vectors import fill

    files = {}
    for name in ("resnet18", "resnet50", "vit_b_16"):
        size = {"image_size": SIDE} if name.startswith("vit") else {}
        model = getattr(torchvision.models, name)(num_classes=CLASSES, **size)
        fill(model)
        with tempfile.NamedTemporaryFile() as file:
            safetensors.torch.save_file(model.state_dict(), file.name)
            content = pathlib.Path(file.name).read_bytes()
        length = struct.unpack("<Q", content[:8])[0]
        files[name] = {"header": content[8:8 + length].decode(), "bytes": len(content), "crc32": zlib.crc32(content)}
    LIST.write_text(json.dumps(files, separators=(",", ":")) + "\n")


def own_reader(content):
    """{name: (type, shape, bytes)}; raises ValueError for what a reader of the format may refuse."""
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length], object_pairs_hook=unique)
    if content[8:9] != b"{" or not all(isinstance(v, str) for v in header.pop("__metadata__", {}).values()):
        raise ValueError("the header is no object, or its metadata no text")
    data = memoryview(content)[8 + length:]
    end = 0
    tensors = {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, after = entry["data_offsets"]
        size = BITS[entry["dtype"]] // 8
        for extent in entry["shape"]:
            size *= extent
        if begin != end or after - begin != size:
            raise ValueError(f"{name}: bytes {begin} to {after}; {size} from {end} are its own")
        tensors[name] = entry["dtype"], entry["shape"], data[begin:after]
        end = after
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes belong to no tensor")
    return tensors


def unique(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def read(content):
    try:
        from safetensors import deserialize
    except ImportError:
        return "own", own_reader(content)
    return "safetensors", {name: (t["dtype"], t["shape"], t["data"]) for name, t in deserialize(content)}


def check(model, path):
    theirs = json.loads(LIST.read_text())[model]
    header = json.loads(theirs["header"])
    header.pop("__metadata__", None)
    reader, ours = read(pathlib.Path(path).read_bytes())
    print(f"{model}: read by {reader}, {len(ours)} tensors")
    different = sorted(header.keys() ^ ours.keys())
    different += [name for name in header.keys() & ours.keys()
                  if (header[name]["dtype"], header[name]["shape"]) != (ours[name][0], list(ours[name][1]))]
    if different:
        print("not in both, or of other type or shape:", different)
        return 1
    # With our values in the places of theirs, the whole is their file.
    text = theirs["header"].encode()
    crc = zlib.crc32(text, zlib.crc32(struct.pack("<Q", len(text))))
    for name in sorted(header, key=lambda name: header[name]["data_offsets"]):
        crc = zlib.crc32(ours[name][2], crc)
    if crc != theirs["crc32"]:
        print("values differ")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(check(*sys.argv[2:]) if sys.argv[1] == "check" else write())
