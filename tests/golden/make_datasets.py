#!/usr/bin/env python3
"""Writes tests/golden/datasets: the same twelve pictures in every format, by the format's own library.

    python make_datasets.py pictures       # pip install pillow==13.0.0
    python make_datasets.py web_dataset    # pip install webdataset==1.0.2
    python make_datasets.py tf_record      # pip install tensorflow-cpu==2.21.0
    python make_datasets.py mds            # pip install mosaicml-streaming==0.13.0
    python make_datasets.py record_io      # pip install mxnet==1.9.1 "numpy<1.24"
    python make_datasets.py cifar          # pip install pillow==13.0.0
    python make_datasets.py parquet        # pip install datasets==5.2.0 pyarrow==26.0.1 pillow==13.0.0
    python make_datasets.py parquet_packed # pip install pyarrow==26.0.1

`pictures` is an ImageFolder of three classes, which the others read; each library wants an environment of
its own. Samples stand in the ImageFolder's order everywhere, and their labels are its classes; TFRecord's
begin at 1, as ImageNet's do. Of CIFAR, whose archives are pickled or plain bytes, the layout is the one
that https://www.cs.toronto.edu/~kriz/cifar.html describes.
"""

import io
import json
import pathlib
import shutil
import struct
import sys
import zlib

OUTPUT = pathlib.Path(__file__).parent / "datasets"
PICTURES = OUTPUT / "image_folder"
CLASSES = ("bird", "cat", "ship")
SIDE = 32
RECORD_IO_MAGIC = struct.pack("<I", 0xCED7230A)


def pixel(label, number, x, y):
    return (x * 8 * (label + 1) % 256, (y * 8 + number * 40) % 256, (label * 80 + x * y // 4) % 256)


def with_chunk(png, content):
    """The PNG with a private chunk, which decoders pass over."""
    chunk = b"heTo" + content
    return png[:33] + struct.pack(">I", len(content)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[33:]


def pictures():
    from PIL import Image

    shutil.rmtree(PICTURES, ignore_errors=True)
    for label, name in enumerate(CLASSES):
        (PICTURES / name).mkdir(parents=True)
        for number in range(4):
            image = Image.new("RGB", (SIDE, SIDE))
            image.putdata([pixel(label, number, x, y) for y in range(SIDE) for x in range(SIDE)])
            file = io.BytesIO()
            if number == 3:
                image.save(file, "JPEG", quality=70)
                (PICTURES / name / f"{number}.jpg").write_bytes(file.getvalue())
                continue
            image.save(file, "PNG")
            content = file.getvalue()
            if number == 1:  # RecordIO has to split such a record, wherever its words begin
                content = with_chunk(content, b"".join(RECORD_IO_MAGIC + b"-" * i for i in range(1, 5)))
            (PICTURES / name / f"{number}.png").write_bytes(content)


def samples():
    """(class, file) in the order of an ImageFolder."""
    for label, name in enumerate(sorted(folder.name for folder in PICTURES.iterdir())):
        for file in sorted((PICTURES / name).iterdir()):
            yield label, file


def empty(name):
    folder = OUTPUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def web_dataset():
    import tarfile

    import webdataset

    folder = empty("web_dataset")
    pattern = str(folder / "pictures-%06d.tar")
    with webdataset.ShardWriter(pattern, maxcount=5, mtime=0, verbose=0) as writer:
        for label, file in samples():
            writer.write({
                "__key__": f"{file.parent.name}/{file.stem}",
                file.suffix[1:]: file.read_bytes(),
                "cls": label,
                "json": {"label": [label, label * 0.5], "nested": {"class": label}},
            })

    # What names of other lengths and alphabets become, by the library that webdataset writes with.
    folder = empty("tar")
    names = ["short.jpg", "d" * 60 + "/" + "n" * 80 + ".jpg", "l" * 150 + ".jpg", "\u00e9t\u00e9/\u96ea.jpg"]
    for format in ("USTAR", "GNU", "PAX"):
        with tarfile.open(folder / f"{format.lower()}.tar", "w", format=getattr(tarfile, f"{format}_FORMAT")) as tar:
            for name in names:
                if format == "USTAR" and name.startswith("l"):
                    continue  # it has no place for it
                member = tarfile.TarInfo(name)
                member.size = len(name)
                tar.addfile(member, io.BytesIO(b"." * len(name)))
    (folder / "names.json").write_text(json.dumps(names) + "\n")


def tf_record():
    import tensorflow as tf

    folder = empty("tf_record")
    writers = [tf.io.TFRecordWriter(str(folder / f"pictures-{i:05d}-of-00002")) for i in range(2)]
    for index, (label, file) in enumerate(samples()):
        number = tf.train.Int64List(value=[label + 1])
        content = tf.train.BytesList(value=[file.read_bytes()])
        feature = {
            "image/encoded": tf.train.Feature(bytes_list=content),
            "image/class/label": tf.train.Feature(int64_list=number),
            "image/filename": tf.train.Feature(bytes_list=tf.train.BytesList(value=[file.name.encode()])),
            "box": tf.train.Feature(float_list=tf.train.FloatList(value=[label, -label, 0.25, 1e9])),
            "empty": tf.train.Feature(),
            "tags": tf.train.Feature(int64_list=tf.train.Int64List(value=[-label, 1 << 40])),
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        writers[index // 7].write(example.SerializeToString())
    for writer in writers:
        writer.close()


def mds():
    import numpy as np
    from streaming import MDSWriter

    columns = {"class": "int", "image": "bytes", "name": "str", "box": "ndarray:float32:4", "weight": "float32"}
    for name, compression in (("mds", None), ("mds_zstd", "zstd:7")):
        folder = empty(name)
        with MDSWriter(out=str(folder), columns=columns, size_limit=3000, compression=compression) as writer:
            for label, file in samples():
                writer.write({
                    "class": label, "image": file.read_bytes(), "name": file.name, "weight": np.float32(label / 4),
                    "box": np.array([label, -label, 0.25, 1e9], np.float32)
                })
    packed = {  # what `hetero-runtime pack --format MDS` makes of mds
        "classes": ("int", int),
        "numbers": ("int64", int),
        "boxes": ("ndarray:float32:2,2", lambda label: np.array([[label, -label], [0.25, 1e9]], np.float32)),
        "pictures": None,
    }
    for name, label_column in packed.items():
        columns = {"image": "bytes"} | ({"label": label_column[0]} if label_column else {})
        with MDSWriter(out=str(empty(f"mds_packed/{name}")), columns=columns, size_limit=256_000_000) as writer:
            for label, file in samples():
                writer.write({"image": file.read_bytes()} | ({"label": label_column[1](label)} if label_column else {}))


def record_io():
    from mxnet import recordio

    folder = empty("record_io")
    writer = recordio.MXIndexedRecordIO(str(folder / "pictures.idx"), str(folder / "pictures.rec"), "w")
    lists = recordio.MXRecordIO(str(empty("record_io_lists") / "pictures.rec"), "w")
    for index, (label, file) in enumerate(samples()):
        writer.write_idx(index, recordio.pack(recordio.IRHeader(0, float(label), index, 0), file.read_bytes()))
        lists.write(recordio.pack(recordio.IRHeader(0, [label, 0.25], index, 0), file.read_bytes()))
    writer.close()
    lists.close()


def cifar():
    from PIL import Image

    records = []
    for label, file in samples():
        planes = [plane.tobytes() for plane in Image.open(file).convert("RGB").split()]
        records.append((label, b"".join(planes)))
    folder = empty("cifar10")
    for number in range(1, 4):
        part = records[(number - 1) * 4:number * 4]
        content = b"".join(bytes([label]) + pixels for label, pixels in part)
        (folder / f"data_batch_{number}.bin").write_bytes(content)
    (folder / "test_batch.bin").write_bytes(bytes([2]) + records[0][1])
    (folder / "batches.meta.txt").write_text("".join(name + "\n" for name in CLASSES) + "\n")


def parquet():
    import datasets
    import pyarrow as pa
    import pyarrow.parquet as pq

    # As load_dataset(...).to_parquet(...) writes pictures and classes.
    columns = {"image": [], "label": [], "weight": []}
    for label, file in samples():
        columns["image"].append({"path": file.name, "bytes": file.read_bytes()})
        columns["label"].append(label)
        columns["weight"].append(label / 4)
    features = datasets.Features({
        "image": datasets.Image(), "label": datasets.ClassLabel(names=list(CLASSES)), "weight": datasets.Value("float32")
    })
    whole = datasets.Dataset.from_dict(columns, features=features)
    folder = empty("parquet")
    whole.select(range(7)).to_parquet(str(folder / "train-00000-of-00002.parquet"))
    whole.select(range(7, 12)).to_parquet(str(folder / "train-00001-of-00002.parquet"))

    # Other writers' settings, each on a file of four small pictures; the label of the last one is null.
    folder = empty("parquet_settings")
    pictures = [file.read_bytes()[:20] + bytes([index]) for index, (_, file) in enumerate(samples())][:4]
    tags = [(-1) ** i * (i << 40) for i in range(4)]

    def write(name, nulls=True, label=pa.int64(), path=None, **settings):
        labels = pa.array([2, 0, 2, None if nulls else 1], label if label != pa.string() else pa.int64())
        rows = {
            "image": pa.array(pictures, pa.binary()), "label": labels.cast(label), "tag": pa.array(tags, pa.int64()),
            "half": pa.array([0.5, float("nan"), -1.5, None], pa.float64()), "count": pa.array([1, 2, 3, 2**32 - 1], pa.uint32())
        }
        table = pa.table(rows)
        if path == "nested":
            table = table.set_column(0, "image", pa.array([None, {"bytes": None}, {"bytes": pictures[2]}, {"bytes": b""}],
                                                          pa.struct([("bytes", pa.binary())])))
        if path == "list":
            table = table.set_column(0, "image", pa.array([[picture] for picture in pictures], pa.list_(pa.binary())))
        if path == "text":
            table = table.set_column(1, "label", pa.array(["a", "b", "a", "c"]))
        if path == "decimal":
            table = table.set_column(1, "label", labels.cast(pa.int32()).cast(pa.decimal128(18, 1)))
        if path == "required":
            fields = [pa.field("image", pa.binary(), False), pa.field("label", label, False)]
            table = table.select(["image", "label"]).cast(pa.schema(fields))
        plain = {"compression": "none", "use_dictionary": False, "store_schema": False, "write_statistics": False}
        pq.write_table(table, folder / f"{name}.parquet", **{**plain, **settings})

    write("plain")
    write("required", nulls=False, label=pa.int32(), path="required")
    write("page_v2", data_page_version="2.0", row_group_size=3)
    codecs = {"image": "none", "tag": "none", "half": "none", "count": "none"}
    dictionary = ["label", "tag", "half", "count"]
    write("label_dictionary", use_dictionary=dictionary, write_statistics=True)
    write("pages", use_dictionary=["label"], write_batch_size=1, data_page_size=1, write_page_index=True)
    write("label_snappy", use_dictionary=dictionary, compression={**codecs, "label": "snappy"})
    write("label_zstd", use_dictionary=dictionary, compression={**codecs, "label": "zstd"}, data_page_version="2.0")
    write("label_gzip", compression={**codecs, "label": "gzip"})
    write("label_delta", column_encoding={"label": "DELTA_BINARY_PACKED"})
    write("label_text", path="text")
    write("label_decimal", path="decimal", store_decimal_as_integer=True)
    write("nested_nulls", path="nested")
    write("list", path="list")
    write("usual")
    pq.write_table(pq.read_table(folder / "usual.parquet"), folder / "usual.parquet")
    # What the error of a file like the last one says.
    pq.write_table(pq.read_table(folder / "usual.parquet"), folder / "rewritten.parquet", compression="none",
                   use_dictionary=False)
    write("dictionary", use_dictionary=["image"])
    write("delta", column_encoding={"image": "DELTA_LENGTH_BYTE_ARRAY"})


def parquet_packed():
    """What `parquet` wrote, as pyarrow writes it again: pictures in compressed pages and dictionaries."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.concat_tables(pq.read_table(file) for file in sorted((OUTPUT / "parquet").iterdir()))
    for name, settings in {
        "usual": {},  # dictionaries and Snappy
        "pages": {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0", "data_page_size": 1,
                  "write_batch_size": 2, "row_group_size": 7},
        # The dictionary is full after a few pictures; the others are PLAIN.
        "gzip": {"compression": "gzip", "dictionary_pagesize_limit": 2000, "write_batch_size": 1},
    }.items():
        pq.write_table(table, empty(f"parquet_{name}") / "pictures.parquet", **settings)


if __name__ == "__main__":
    {f.__name__: f for f in (pictures, web_dataset, tf_record, mds, record_io, cifar, parquet,
                             parquet_packed)}[sys.argv[1]]()
