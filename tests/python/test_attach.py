"""A job around a script that it has not started: `hetero-runtime local --attach`, and hetero.Stream("job.yaml")."""

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import textwrap
import uuid

import pytest

from proof.job import RUNTIME, SOURCE, manifest, marked, wait_for


class Attached:
    """A program in a folder with a job of two ranks, and all that the program has started."""

    def __init__(self, folder, arguments):
        self.folder = folder
        self.mark = f"PROOF_MARK={uuid.uuid4()}".encode()
        (folder / "job.yaml").write_text(json.dumps(manifest(["python3", "train.py"])))
        key, value = self.mark.decode().split("=")
        environment = {**os.environ, key: value, "PYTHONPATH": str(SOURCE / "python")}
        environment["PATH"] = f"{RUNTIME.parent}:{environment['PATH']}"
        self._errors = open(folder / "errors", "wb")
        self.process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=folder,
        )

    def line(self):
        return self.process.stdout.readline().decode()

    def errors(self):
        return (self.folder / "errors").read_text()

    def report(self):
        return json.loads((self.folder / "out/report.json").read_text())

    def nothing_is_left(self):
        wait_for(lambda: not marked(self.mark), f"the end of {list(marked(self.mark).values())}", seconds=20)

    def close(self):
        for process in marked(self.mark):
            os.kill(process, signal.SIGKILL)
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()
        self._errors.close()


@pytest.fixture
def begin(tmp_path):
    running = []

    def begin(*arguments):
        running.append(Attached(tmp_path, [str(argument) for argument in arguments]))
        return running[-1]

    yield begin
    for program in running:
        program.close()


@pytest.fixture
def alone(begin, tmp_path):
    """A script that nobody has started for a job."""

    def start(text):
        (tmp_path / "train.py").write_text(textwrap.dedent(text))
        return begin(sys.executable, "train.py")

    return start


def test_says_where_the_stream_is_and_ends_with_its_input(begin):
    run = begin(RUNTIME, "local", "job.yaml", "--attach", "--output", "out")
    socket = pathlib.Path(json.loads(run.line())["socket"])
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert len(str(socket)) < 108
    run.process.stdin.write(b"what is written is passed over\n")
    run.process.stdin.flush()
    assert run.process.poll() is None
    run.process.stdin.close()
    assert run.process.wait(30) == 130, run.errors()
    assert run.process.stdout.read() == b"", "one line, and nothing else"
    assert "one rank instead of 2: a step has 8 samples, not 16" in run.errors()
    assert "standard input has ended" in run.errors()
    assert run.report()["state"] == "Stopped"
    assert not socket.parent.exists()
    run.nothing_is_left()


def test_a_script_by_itself_gets_the_stream_of_one_rank(alone):
    run = alone(
        """
        import hetero
        stream = hetero.Stream("job.yaml", output="out")
        assert (stream.rank, stream.world_size) == (0, 1)
        steps = sum(len(batch["label"]) for epoch in stream.epochs() for batch in epoch)
        stream.close()
        print(steps)
        """
    )
    assert run.line() == "600\n", run.errors()
    assert run.process.wait(30) == 0
    run.nothing_is_left()
    report = run.report()
    assert report["state"] == "Succeeded", report
    assert report["samplesConsumed"] == 600
    one = ["--set", "roles.gpu.replicas=1", "--input-only", "--output", "alone"]
    subprocess.run([RUNTIME, "local", "job.yaml", *one], cwd=run.folder, check=True, timeout=60, capture_output=True)
    assert report["streamDigest"] == json.loads((run.folder / "alone/report.json").read_text())["streamDigest"]


def test_the_job_ends_with_a_script_that_is_killed(alone):
    run = alone(
        """
        import hetero
        import time
        stream = hetero.Stream("job.yaml", output="out")
        batch = next(iter(stream))
        print("in the middle", flush=True)
        time.sleep(600)
        """
    )
    assert run.line() == "in the middle\n", run.errors()
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait(10)
    run.nothing_is_left()
    assert run.report()["state"] == "Stopped", run.report()
