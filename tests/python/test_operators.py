"""Python operators: what they are given, that the stream stays a function of the job, and what becomes of it when
they do what functions of users do."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import safetensors.numpy

from proof.job import RUNTIME, SCRIPTS, manifest, python, wait_for
from proof.record import digest_of

COUNT, SEED = 96, 11


def full(*values):
    return pytest.param(*values, marks=pytest.mark.full)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Sample i is a picture of 4x4 pixels i."""
    folder = tmp_path_factory.mktemp("pictures")
    pixels = np.repeat(np.arange(COUNT, dtype=np.uint8), 16)
    for split in ("train", "t10k"):
        (folder / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, COUNT, 4, 4) + pixels.tobytes())
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, COUNT) + bytes(COUNT))
    return folder


def operator(name, **changes):
    return {
        "op": "Python",
        "path": str(SCRIPTS),
        "module": "operators",
        "function": name,
        "outputs": {"image": {"shape": [6, 5, 3], "type": "Uint8"}},
        **changes,
    }


def job(pictures, *pipeline, workers=2, script="fields.py", **changes):
    made = manifest(
        python(script),
        dataset={"uri": f"file://{pictures}", "format": "IDX", "classes": 4},
        pipeline=list(pipeline),
        training__seed=SEED,
        **{"training__epochs": 2, **changes},
    )
    for role in made["spec"]["roles"]:
        if role["type"] == "CPUWorker":
            role["replicas"] = workers
    return made


def consumed(run):
    """By epoch and sample, the pictures that arrived."""
    report = run.succeed()
    assert report["samplesConsumed"] == 2 * COUNT
    pictures = {}
    steps = -(-COUNT // 16)  # of two ranks with batches of eight
    for path in sorted((run.folder / "dump").glob("*.safetensors")):
        step = int(path.stem.split("-step")[1])
        tensors = safetensors.numpy.load_file(path)
        for sample, image in zip(tensors["sample_ids"].tolist(), tensors["images"], strict=True):
            assert (step // steps, sample) not in pictures
            pictures[step // steps, sample] = image
    assert len(pictures) == 2 * COUNT
    return report, pictures


def dumped(start, made, **options):
    return start(made, "--input-only", "--dump-stream", "dump", **options)


def expected(epoch, sample, position=0):
    """What `noise` makes, by the words of docs/operators.md alone."""
    bits = np.random.Philox(key=[SEED, epoch], counter=[0, 0, sample, position])
    image = np.random.Generator(bits).integers(0, 256, (6, 5, 3), dtype=np.uint8)
    image[0] = sample
    return image


def test_random_numbers_and_digest(start, pictures):
    """Each picture is the function of (seed, epoch, sample, position) that the docs promise, whoever makes it."""
    digests = []
    for workers in (1, 2, 3):
        report, made = consumed(dumped(start, job(pictures, operator("noise"), workers=workers)))
        digests.append(report["streamDigest"])
        (placed,) = report["placement"]
        assert placed["function"] == "operators.noise"
        assert 0 < placed["pythonSeconds"] < placed["workerSeconds"] < 0.1
        for (epoch, sample), image in made.items():
            np.testing.assert_array_equal(image, expected(epoch, sample))
    assert len(set(digests)) == 1


def test_between_other_operators(start, pictures):
    """Its place in the pipeline counts, native operators go before and after it."""
    native = {"op": "Resize", "size": {"height": 2, "width": 3}}
    flip = {"op": "VerticalFlip", "probability": 1.0}
    _, made = consumed(dumped(start, job(pictures, native, operator("noise"), flip)))
    for (epoch, sample), image in made.items():
        np.testing.assert_array_equal(image[::-1], expected(epoch, sample, position=1))


def test_interpreters_that_end(start, pictures, tmp_path):
    """Exit, SIGKILL, MemoryError, OSError and an exception that does not come again: tried in another interpreter."""
    marks = tmp_path / "marks"
    marks.mkdir()
    pure, _ = consumed(dumped(start, job(pictures, operator("noise"))))
    run = dumped(start, job(pictures, operator("strange")), environment={"OPERATORS_MARKS": str(marks)})
    report, _ = consumed(run)
    assert report["streamDigest"] == pure["streamDigest"]
    assert report.get("badSamples", 0) == 0
    kinds = {path.name.split("-")[0] for path in marks.iterdir()}
    assert kinds == {"exit", "kill", "memory", "disk", "state"}


def test_kill_of_workers_and_of_all_interpreters(start, pictures):
    made = job(pictures, {"op": "Delay", "milliseconds": 150}, operator("noise"))
    pure = dumped(start, made).succeed()
    run = dumped(start, made)
    for strike in range(3):
        victim = run.pid(f"cpu-{strike % 2}")
        os.kill(interpreters_of(run, victim)[strike % 2], signal.SIGKILL)  # first the one that forks, too
    os.kill(run.pid("cpu-0"), signal.SIGKILL)
    assert run.succeed()["streamDigest"] == pure["streamDigest"]


def test_the_only_worker_freezes(start, pictures):
    """Trainers cannot run Python: where nobody is left who can, one that hangs does not come back by itself."""
    made = job(pictures, {"op": "Delay", "milliseconds": 20}, operator("noise"), workers=1)
    pure = dumped(start, made).succeed()
    run = dumped(start, made)
    interpreters_of(run, run.pid("cpu-0"))
    os.kill(run.pid("cpu-0"), signal.SIGSTOP)
    assert run.succeed()["streamDigest"] == pure["streamDigest"]


def test_a_worker_that_is_asked_to_go(start, pictures):
    """Nobody else can run Python: another process takes its place, at no restart."""
    made = job(pictures, {"op": "Delay", "milliseconds": 20}, operator("noise"), workers=1)
    pure = dumped(start, made).succeed()
    run = dumped(start, made)
    interpreters_of(run, run.pid("cpu-0"))
    os.kill(run.pid("cpu-0"), signal.SIGTERM)
    assert run.succeed()["streamDigest"] == pure["streamDigest"]
    assert "cpu-0 left, as it was asked to" in run.text()


def test_processes_of_functions(start, pictures):
    """What a process forked by a function returns is nobody's, and no process is left."""
    digests = {
        dumped(start, job(pictures, operator("forks"), workers=count)).succeed()["streamDigest"] for count in (1, 2)
    }
    assert len(digests) == 1 and None not in digests


def test_a_function_that_always_raises(start, pictures):
    words = "operators.mistaken: NameError: name 'not_defined_anywhere' is not defined (operators.py, line "
    dumped(start, job(pictures, operator("mistaken"))).fail(words, "so it is for each of the first 20 pictures")


def interpreters_of(run, worker):
    """Processes below a worker, the one that forks the others first."""

    def below(pid):
        own = []
        for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                own += [int(word) for word in thread.read_text().split()]
            except FileNotFoundError:
                pass
        return own + [lower for child in own for lower in below(child)]

    return wait_for(
        lambda: (found := below(worker)) and len(found) > 1 and found, "interpreters", while_running=run.process
    )


def test_a_sample_that_raises(start, pictures):
    run = dumped(start, job(pictures, operator("raises")))
    report = run.succeed()
    assert report["badSamples"] == 1  # in both epochs
    reason = json.dumps(report)
    assert "Python operator operators.raises: ValueError: cannot take seventeen (operators.py, line " in reason


def test_a_sample_that_kills(start, pictures):
    """Everybody has tried it three times: the job fails with its name."""
    dumped(start, job(pictures, operator("kills"))).fail("operators.kills", "its interpreter ended", "3 times in a row")


@pytest.mark.full
def test_a_script_that_does_not_end_with_its_stream(start, pictures, tmp_path):
    """It catches StreamFailed and goes on: the job would wait for it for ever."""
    path = tmp_path / "script.py"
    path.write_text(
        textwrap.dedent(
            """
            import hetero, time
            try:
                for batch in hetero.Stream():
                    pass
            except hetero.StreamFailed:
                time.sleep(1000)
            """
        )
    )
    made = job(pictures, operator("kills"))
    made["spec"]["training"]["script"]["command"] = [sys.executable, str(path)]
    start(made).fail("operators.kills", "its interpreter ended", "3 times in a row")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("other_shape", "returned image as uint8 [6, 5, 4], but outputs says uint8 [6, 5, 3]"),
        full("other_type", "returned image as float32 [6, 5, 3], but outputs says uint8"),
        full("other_names", "returned ['depth', 'image'], but outputs names 'image' alone"),
        ("no_dict", "returned ndarray in the place of a dict with 'image'"),
    ],
)
def test_another_result(start, pictures, function, words):
    dumped(start, job(pictures, operator(function))).fail(f"operators.{function} {words}")


@pytest.mark.parametrize("function", ["global_state", full("other_numbers"), full("clock")])
def test_functions_that_are_none(start, pictures, function):
    """Some samples are made twice: what is not reproducible is not said to be, and with Strict the job fails."""
    pipeline = [{"op": "Delay", "milliseconds": 30}, operator(function)]  # so that the head hears of it before the end
    report = dumped(start, job(pictures, *pipeline)).succeed()
    assert report["streamDigest"] is None
    words = f"Python operator operators.{function} made other pixels when it was called a second time for sample "
    assert words in report["digestProblem"]
    dumped(start, job(pictures, *pipeline, verify="Strict", training__epochs=20)).fail(words, "spec.verify: Warn")
    report = dumped(start, job(pictures, *pipeline, verify="Disabled")).succeed()
    assert len(report["streamDigest"]) == 32 and "digestProblem" not in report


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"module": "operatorz"}, "there is no module 'operatorz' in "),
        ({"function": "noize"}, "has no function 'noize'"),
        ({"function": "SHAPE"}, "operators.SHAPE is tuple, which cannot be called"),
    ],
)
def test_functions_that_are_not_there(start, pictures, changes, words):
    run = dumped(start, job(pictures, operator("noise", **changes)))
    assert run.wait() == 2
    assert "spec.pipeline[0]" in run.text()
    assert words in run.text()
    run.nothing_left()


def test_validation_has_no_random_numbers(start, pictures):
    made = job(pictures, operator("plain"))
    made["spec"]["dataset"]["validation"] = {"uri": f"file://{pictures}", "format": "IDX", "classes": 4}
    dumped(start, made).succeed()


def test_functions_see_no_secrets(start, pictures):
    secrets = {"AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    report = dumped(start, job(pictures, operator("secrets")), environment=secrets).succeed()
    assert report.get("badSamples", 0) == 0


def test_modules_beside_the_manifest(start, pictures, tmp_path):
    """Without `path` the manifest's folder is one where modules are found, for the job and for its preview."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "beside.py").write_text((SCRIPTS / "operators.py").read_text())
    made = job(pictures, {key: value for key, value in operator("noise", module="beside").items() if key != "path"})
    (folder / "job.yaml").write_text(json.dumps(made))
    variables = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"}
    variables.pop("PYTHONPATH", None)
    for words in (["preview", "--samples", "4"], ["local", "--input-only", "--output", "out"]):
        done = subprocess.run(
            [RUNTIME, words[0], "job.yaml", *words[1:]], cwd=folder, env=variables, capture_output=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "script-preview.png").stat().st_size > 100


def test_no_worker_no_python(pictures, tmp_path):
    (tmp_path / "job.yaml").write_text(json.dumps(job(pictures, operator("noise"), workers=0)))
    done = subprocess.run([RUNTIME, "validate", tmp_path / "job.yaml"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "spec.pipeline[0]" in done.stdout + done.stderr
    assert "Python operators run on CPU workers, and the job has none" in done.stdout + done.stderr


def test_a_script_gets_what_the_functions_make(start, pictures):
    """It hashes the tensors that it received."""
    run = start(job(pictures, operator("noise"), script="ledger.py"))
    report = run.succeed()
    entries = sum(run.journal("trained"), [])
    assert len({(entry["epoch"], sample) for entry in entries for sample in entry["ids"]}) == 2 * COUNT
    assert digest_of(report["seed"], entries) == report["streamDigest"]


@pytest.mark.full
def test_a_function_that_hangs(start, pictures, tmp_path):
    """Half a minute later its interpreter is ended, and another one does the sample."""
    marks = tmp_path / "marks"
    marks.mkdir()
    pure, _ = consumed(dumped(start, job(pictures, operator("noise"))))
    run = dumped(start, job(pictures, operator("hangs"), workers=1), environment={"OPERATORS_MARKS": str(marks)})
    report, _ = consumed(run)
    assert report["streamDigest"] == pure["streamDigest"]
    assert list(marks.iterdir())
