#!/usr/bin/env python3
"""The table of docs/data.md, row by row, on the twelve pictures of tests/golden/datasets: the command tells the row's format,
and the row's lines make a job that reads them. The page's blocks of YAML are valid.

    tests/integration/local/data_table_test.py [PROGRAM]     # build/release/bin/hetero-runtime
"""

import gzip
import json
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
GOLDEN = SOURCE / "tests/golden/datasets"
PAGE = (SOURCE / "docs/data.md").read_text(encoding="utf-8")
HEADING = "## One command for each format\n"
PROGRAM = SOURCE / "build/release/bin/hetero-runtime"
CLASSES = ("bird", "cat", "ship")
PIXELS = 32 * 32

# What a row's address stands for: a folder of GOLDEN, or one that make_others() writes.
PLACES = {
    "file:///data/photos": "image_folder",
    "file:///data/web": "web_dataset",
    "file:///data/tfrecord": "tf_record",
    "file:///data/recordio": "record_io",
    "file:///data/mds": "mds",
    "file:///data/parquet": "parquet",
    "file:///data/cifar10": "cifar10",
    "file:///data/cifar100": "cifar100",
    "file:///data/idx": "idx",
    "file:///data/lists/files.manifest": "lists/files.manifest",
    "file:///data/lists/augmented.manifest": "lists/augmented.manifest",
    "file:///data/lists/train.csv": "lists/train.csv",
    "file:///data/lists/train.tsv": "lists/train.tsv",
}
CLASS_COUNTS = {"CIFAR10": 10, "CIFAR100": 100}  # of the others as many as are found

# What a block of YAML has no line for.
REST = {
    "dataset": 'dataset: {uri: "file:///data/photos"}\n',
    "pipeline": "pipeline:\n- {op: Decode}\n- {op: Resize, size: {height: 32, width: 32}}\n- {op: Normalize}\n",
    "training": "training: {model: {name: mlp}, batchSizePerWorker: 4, epochs: 1}\n",
    "roles": "roles:\n- {name: cpu, type: CPUWorker}\n",
}
OTHER_ROLES = "- {name: head, type: Head}\n- {name: gpu, type: GPUWorker, gpusPerReplica: 0}\n"
HEAD = "apiVersion: training.hetero.dev/v1alpha1\nkind: HeteroTrainingJob\nmetadata: {name: data-table}\nspec:\n"


def indented(text, spaces):
    return "".join(" " * spaces + line + "\n" for line in text.splitlines())


def outdented(text):
    lines = text.splitlines()
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "".join(line[least:] + "\n" for line in lines)


def job_of(spec):
    """A whole manifest of some of the fields below `spec`, or of all."""
    if re.search(r"^apiVersion:", spec, re.MULTILINE):
        return spec
    if spec.startswith("spec:\n"):
        spec = outdented(spec[len("spec:\n") :])
    given = re.findall(r"^(\w+):", spec, re.MULTILINE)
    if given[-1:] != ["roles"]:
        spec += "".join(text for name, text in REST.items() if name not in given)
    else:  # last, so that the other roles can stand behind it
        spec = "".join(text for name, text in REST.items() if name not in given) + spec
    return HEAD + indented(spec + OTHER_ROLES, 2)


class Row:
    def __init__(self, line):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        self.name = cells[0]
        code = [re.findall(r"`([^`]+)`", cell) for cell in cells]
        self.format = code[0][0]
        self.command = shlex.split(code[2][0])
        self.lines = code[3]  # below `dataset:`

    def moved(self, uri, to):
        """The row for another address."""
        other = Row.__new__(Row)
        other.name, other.format = self.name, self.format
        other.command = [to if word == uri else word for word in self.command]
        other.lines = [line.replace(uri, to) for line in self.lines]
        return other


def read_rows():
    section = PAGE.split(HEADING, 1)[1].split("\n## ", 1)[0]
    return [Row(line) for line in section.splitlines() if line.startswith("| `")]


def yaml_blocks():
    return [outdented(text) for text in re.findall(r"^ *```yaml\n(.*?)^ *```", PAGE, re.MULTILINE | re.DOTALL)]


def make_others(folder):
    """The formats that GOLDEN has no files of, from those that it has."""
    records = b"".join((GOLDEN / "cifar10" / f"data_batch_{i}.bin").read_bytes() for i in (1, 2, 3))
    records = [records[i : i + 1 + 3 * PIXELS] for i in range(0, len(records), 1 + 3 * PIXELS)]
    (folder / "cifar100").mkdir()
    (folder / "cifar100/train.bin").write_bytes(b"".join(b"\0" + record for record in records))
    (folder / "idx").mkdir()
    pictures = struct.pack(">IIII", 0x803, len(records), 32, 32) + b"".join(one[1 : 1 + PIXELS] for one in records)
    labels = struct.pack(">II", 0x801, len(records)) + b"".join(one[:1] for one in records)
    (folder / "idx/train-images-idx3-ubyte.gz").write_bytes(gzip.compress(pictures))
    (folder / "idx/train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels))
    lists = folder / "lists"
    shutil.copytree(GOLDEN / "image_folder", lists / "set")
    names = [f"{path.parent.name}/{path.name}" for path in sorted((lists / "set").glob("*/*"))]
    (lists / "files.manifest").write_text(json.dumps([{"prefix": "set/"}, *names]))
    for separator, ending in ((",", "csv"), ("\t", "tsv")):
        rows = [("path", "label")] + [(f"set/{name}", name.split("/")[0]) for name in names]
        (lists / f"train.{ending}").write_text("".join(separator.join(row) + "\n" for row in rows))
    (lists / "augmented.manifest").write_text(
        "".join(
            json.dumps({"source-ref": f"set/{name}", "class": CLASSES.index(name.split("/")[0])}) + "\n"
            for name in names
        )
    )


class DataTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="hetero-data-table-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        make_others(cls.folder)

    def run_program(self, *arguments):
        done = subprocess.run(
            [str(PROGRAM), *map(str, arguments)],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 0, f"{shlex.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def run_job(self, dataset):
        """The report of a job with these lines below `dataset:`."""
        (self.folder / "job.yaml").write_text(job_of("dataset:\n" + indented(dataset, 2)))
        self.run_program("local", "job.yaml", "--input-only", "--output", "out")
        report = json.loads((self.folder / "out/report.json").read_text())
        shutil.rmtree(self.folder / "out")
        return report

    def placed(self, row):
        """The row, with the files of the test at its address."""
        uri = next((word for word in row.command if word.startswith("file://")), None)
        self.assertIn(uri, PLACES, "a row for another address: say in PLACES which files it stands for")
        self.assertIn(f"uri: {uri}", row.lines)
        place = PLACES[uri]
        folder = GOLDEN if (GOLDEN / place).exists() else self.folder
        return row.moved(uri, f"file://{folder / place}")

    def check(self, row):
        """The digest of what a job reads."""
        self.assertEqual(row.command[:2], ["hetero-runtime", "inspect"])
        self.assertNotIn("--format", row.command)
        self.assertEqual(row.lines[1], f"format: {row.format}")
        found = json.loads(self.run_program(*row.command[1:], "--json"))
        want = {"format": row.format, "samples": 12, "badSamples": 0, "labels": {"0": 4, "1": 4, "2": 4}}
        self.assertEqual({key: found[key] for key in want}, want)
        self.assertEqual(found["classes"], CLASS_COUNTS.get(row.format, len(CLASSES)))

        report = self.run_job("\n".join(row.lines))
        self.assertEqual(report["samplesConsumed"], 12)
        printed = self.run_program(*row.command[1:]).split("In the manifest\n  dataset:\n", 1)[1]
        printed = [line for line in outdented(printed).splitlines() if not re.match("samples: |classes: ", line)]
        if printed != row.lines:  # written in another way, perhaps
            other = self.run_job("\n".join(printed))
            self.assertEqual(other["config"]["spec"]["dataset"], report["config"]["spec"]["dataset"],
                             "the row's lines are not those that its command prints")  # fmt: skip
        return report["streamDigest"]

    def test_each_row(self):
        digests = {}
        for row in read_rows():
            with self.subTest(row.name):
                digests[row.name] = self.check(self.placed(row))
            if row.name.endswith("CSV or TSV"):
                with self.subTest("TSV"):
                    uri = "file:///data/lists/train.csv"
                    digests["TSV"] = self.check(self.placed(row.moved(uri, "file:///data/lists/train.tsv")))
        digests.pop("`IDX`", None)  # pictures of one channel
        self.assertGreater(len(digests), 1)
        self.assertEqual(len(set(digests.values())), 1, digests)

    def test_each_format_has_a_row(self):
        known = re.search(r"--format ENUM:([\w, \n]+)\n", self.run_program("inspect", "--help")).group(1)
        formats = set(re.split(r",\s*", known)) - {"Auto", "Synthetic"}
        self.assertEqual({row.format for row in read_rows()}, formats)

    def test_blocks_of_yaml_are_valid(self):
        blocks = yaml_blocks()
        self.assertGreater(len(blocks), 5)
        for block in blocks:
            with self.subTest(block):
                (self.folder / "block.yaml").write_text(job_of(block))
                self.run_program("validate", "block.yaml")


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.exists(sys.argv[1]):
        PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
