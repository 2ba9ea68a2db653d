"""`hetero-runtime local` with a script, as a user runs it."""

import copy
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("HETERO_BIN_DIR", SOURCE / "build/release/bin"))
PACKAGE = os.environ.get("HETERO_PYTHON_PACKAGE", str(SOURCE / "python"))
SCRIPTS = SOURCE / "tests/python/scripts"
RUNTIME = BIN / "hetero-runtime"

MANIFEST = {
    "apiVersion": "training.hetero.dev/v1alpha1",
    "kind": "HeteroTrainingJob",
    "metadata": {"name": "script"},
    "spec": {
        "dataset": {
            "uri": "synthetic://",
            "samples": 200,
            "classes": 4,
            "image": {"height": 16, "width": 16, "channels": 3},
        },
        "pipeline": [
            {"op": "RandomResizedCrop", "size": {"height": 12, "width": 12}, "scale": {"min": 0.5, "max": 1.0}},
            {"op": "HorizontalFlip"},
            {"op": "Normalize"},
        ],
        "training": {"batchSizePerWorker": 8, "epochs": 3, "seed": 11},
        "roles": [
            {"name": "head", "type": "Head"},
            {"name": "cpu", "type": "CPUWorker", "replicas": 2},
            {"name": "gpu", "type": "GPUWorker", "replicas": 2, "gpusPerReplica": 0},
        ],
    },
}


def manifest(command, **changes):
    """The small job with `command`; `changes` are overrides with their path's dots written as `__`."""
    job = copy.deepcopy(MANIFEST)
    if command is not None:
        job["spec"]["training"]["script"] = {"command": [str(word) for word in command]}
    for path, value in changes.items():
        place = job["spec"]
        *parts, last = path.split("__")
        for part in parts:
            place = (
                next(role for role in place if role["name"] == part)
                if isinstance(place, list)
                else place.setdefault(part, {})
            )
        place[last] = value
    return job


def python(script, *arguments):
    """The command of a script in tests/python/scripts."""
    return [sys.executable, str(SCRIPTS / script), *map(str, arguments)]


def marked(mark):
    """Processes with `mark` in their environment: pid and command line. Zombies have neither."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def wait_for(condition, what, seconds=240.0, while_running=None):
    """What `condition` gives once it is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        if while_running is not None and while_running.poll() is not None:
            break
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {seconds} s, or the job ended before")


class LocalJob:
    """A job in a folder of its own. Leaving the `with` block ends every process of it."""

    def __init__(self, folder, job, *arguments, environment=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.records = self.folder / "records"
        self.records.mkdir(exist_ok=True)
        self.output = self.folder / "out"
        self._mark = f"PROOF_MARK={uuid.uuid4()}"
        (self.folder / "job.yaml").write_text(json.dumps(job))
        variables = dict(os.environ)
        variables.update(
            PYTHONPATH=f"{PACKAGE}:{SOURCE / 'tests/python'}",
            PROOF_RECORDS=str(self.records),
            PROOF_MARK=self._mark.split("=")[1],
            OMP_NUM_THREADS="1",
        )
        # Byte code is kept, or each process compiles all that it imports; but not beside the sources.
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        variables.setdefault("PYTHONPYCACHEPREFIX", str(SOURCE / "build/pycache"))
        variables.update(environment or {})
        self._text = open(self.folder / "text", "wb")
        self.process = subprocess.Popen(
            [RUNTIME, "local", self.folder / "job.yaml", "--output", self.output, *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self._text,
            stderr=subprocess.STDOUT,
            env=variables,
            cwd=self.folder,
        )

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._text.close()
        for pid in self.living():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if kind is not None:
            print(self.text()[-6000:])

    def living(self):
        return marked(self._mark.encode())

    def wait(self, seconds=300):
        """The exit code; a job that takes longer is a failure."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds} s; its processes: {self.living()}") from None
        return code

    def succeed(self, seconds=300):
        """Waits; the report of a job that ended well and left nothing behind."""
        assert self.wait(seconds) == 0, self.text()[-4000:]
        self.nothing_left()
        report = self.report()
        assert report["state"] == "Succeeded"
        return report

    def fail(self, *words, seconds=300):
        """Waits; the report of a job that failed with a message that has these words."""
        assert self.wait(seconds) == 1, self.text()[-4000:]
        self.nothing_left()
        report = self.report()
        assert report["state"] == "Failed"
        for word in words:
            assert word in report["message"], report["message"]
        return report

    def nothing_left(self):
        assert self.living() == {}, "processes were left behind"

    def text(self):
        return (self.folder / "text").read_text(errors="replace")

    def report(self):
        return json.loads((self.output / "report.json").read_text())

    def pid(self, name):
        """Of a member ("gpu-0"), waiting until it runs."""

        def find():
            try:
                members = json.loads((self.output / "processes.json").read_text())
            except (FileNotFoundError, json.JSONDecodeError):
                return None
            return next((member["pid"] for member in members if member["name"] == name), None)

        return wait_for(find, f"{name} in processes.json", while_running=self.process)

    def journal(self, name="batches", ranks=2):
        from proof.record import read_journal

        return [read_journal(self.records, name, rank) for rank in range(ranks)]

    def wait_for_step(self, step, rank=0, name="batches", ranks=2):
        """Waits until the script of a rank has written down a batch of `step` or later."""
        return wait_for(
            lambda: any(entry["step"] >= step for entry in self.journal(name, ranks)[rank]),
            f"step {step} of rank {rank}",
            while_running=self.process,
        )
