"""Scripts that do what they should not: each ends in a defined way, is told so by name, and leaves nothing behind."""

import json
import signal
import sys
import textwrap
import time

import pytest

from proof.job import manifest, wait_for


@pytest.fixture
def run_script(start, tmp_path):
    """Starts a job whose command is this text of Python."""

    def begin(text, *arguments, **changes):
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        return start(manifest([sys.executable, str(path)], **changes), *arguments)

    return begin


# --- Scripts that end ---


def test_ends_early(run_script):
    """An end with 0 is the script's decision; that batches were left is said. A step counts as done when the next batch
    is asked for, or when the stream is closed."""
    run = run_script(
        """
        import hetero
        stream = hetero.Stream()
        for epoch in stream.epochs():
            for batch in epoch:
                if batch.step == 4:
                    raise SystemExit(0)
        """
    )
    report = run.succeed()
    assert report["steps"] == 4
    assert "of 39" in run.text(), run.text()


def test_never_asks_for_a_batch(run_script):
    run = run_script("print('I do something else', flush=True)")
    run.fail("has not opened a stream", "hetero.Stream()")


def test_opens_the_stream_and_asks_for_nothing(run_script):
    run = run_script("import hetero; hetero.Stream()")
    run.fail("asked for no batch")


def test_hangs_before_the_first_batch(run_script):
    run = run_script("import time; time.sleep(1000)", runPolicy={"startupDeadlineSeconds": 5, "maxRestarts": 0})
    run.fail("startupDeadlineSeconds")


def test_one_rank_ends_and_the_other_fails(run_script):
    """Who has ended well starts again with the others: the job's end is that of all."""
    run = run_script(
        """
        import hetero, os, pathlib, time
        mark = pathlib.Path(os.environ["PROOF_RECORDS"]) / "failed"
        stream = hetero.Stream()
        (pathlib.Path(os.environ["PROOF_RECORDS"]) / f"start-{stream.rank}-{stream.restart_count}").touch()
        for epoch in stream.epochs():
            for batch in epoch:
                pass
        stream.close()
        if stream.rank == 1 and not mark.exists():
            time.sleep(1)
            mark.touch()
            raise RuntimeError("at the very end")
        """
    )
    report = run.succeed()
    assert report["scriptRestarts"] == 1
    assert {path.name for path in run.records.glob("start-*")} == {"start-0-0", "start-0-1", "start-1-0", "start-1-1"}


# --- Scripts that fail ---


def test_fails_alike_three_times(run_script):
    run = run_script(
        """
        import hetero
        stream = hetero.Stream()
        for epoch in stream.epochs():
            for batch in epoch:
                if batch.step == 3 and stream.rank == 1:
                    raise KeyError("no such column")
        """,
        runPolicy={"maxRestarts": 50},
    )
    report = run.fail("KeyError: 'no such column'", "three times")
    assert report["scriptRestarts"] == 2
    assert "Traceback (most recent call last)" in json.dumps(report["faults"])


@pytest.mark.full
def test_more_failures_than_restarts(run_script):
    run = run_script(
        """
        import hetero
        stream = hetero.Stream()
        for epoch in stream.epochs():
            for batch in epoch:
                if batch.step == stream.restart_count:
                    raise RuntimeError(f"failure {stream.restart_count}")
        """,
        runPolicy={"maxRestarts": 2},
    )
    report = run.fail("failure", "maxRestarts")
    assert report["scriptRestarts"] == 2


def test_dies_of_a_signal(run_script):
    run = run_script(
        """
        import ctypes, hetero
        stream = hetero.Stream()
        for batch in stream:
            ctypes.string_at(0)
        """,
        runPolicy={"maxRestarts": 0},
    )
    run.fail("SIGSEGV")


def test_is_no_python(run_script):
    run = run_script("this is no Python", runPolicy={"maxRestarts": 5})
    run.fail("SyntaxError")


def test_command_that_does_not_exist(start):
    run = start(manifest(["no-such-program", "train.py"]))
    assert run.wait() in (1, 2)
    assert "no-such-program" in run.text()
    run.nothing_left()


def test_forgets_init_process_group(run_script):
    run = run_script(
        """
        import hetero, torch
        stream = hetero.Stream()
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
        """,
        runPolicy={"maxRestarts": 0},
        roles__gpu__replicas=1,
    )
    run.fail("Default process group has not been initialized")


# --- States ---


@pytest.mark.parametrize(
    "change, words",
    [
        ("state['step'] += stream.rank; state['slot'] += 16 * stream.rank", ["rank", "step", "same state"]),
        ("state['slot'] = 3", ["slot 3", "was changed"]),
    ]
    + [
        # stream_misuse_test has the checks one by one.
        pytest.param(change, words, marks=pytest.mark.full)
        for change, words in [
            ("state['seed'] = 12", ["seed"]),
            ("state['fingerprint'] = 'dataset:another'", ["another dataset"]),
            ("state['global_batch'] = 48", ["48 samples"]),
            ("state['step'] = 4000", ["after step 4000"]),
            ("state['digest'] = 'no digits'", ["digest"]),
            ("state['format'] = 7", ["format"]),
            ("state = {}", ["format"]),
            ("if stream.rank: state = stream.state_dict()", ["rank", "step", "same state"]),
        ]
    ],
)
def test_states_that_do_not_fit(run_script, change, words):
    run = run_script(
        f"""
        import hetero, json, os, pathlib
        stream = hetero.Stream()
        path = pathlib.Path(os.environ["PROOF_RECORDS"]) / f"state-{{stream.rank}}"
        if path.exists():
            state = json.loads(path.read_text())
            {change}
            stream.load_state_dict(state)
        for batch in stream:
            if batch.step == 6 and not path.exists():
                path.write_text(json.dumps(stream.state_dict()))
                raise RuntimeError("now again")
        """,
    )
    run.fail(*words)


# --- Processes ---


def test_prints_a_gigabyte(run_script):
    """The log is cut, and memory bounded: the agent may not take the text of a script into it."""
    run = run_script(
        """
        import hetero, sys
        stream = hetero.Stream()
        for batch in stream:
            if batch.step == 2 and stream.rank == 1:
                line = "x" * 1023 + "\\n"
                for _ in range(1 << 20):
                    sys.stdout.write(line)
                print("the end of it", flush=True)
        """,
        training__epochs=1,
    )
    agent = run.pid("gpu-1")
    peak = 0
    while run.process.poll() is None:
        try:
            with open(f"/proc/{agent}/status") as status:
                peak = max([peak] + [int(line.split()[1]) for line in status if line.startswith("VmHWM")])
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.1)
    run.succeed()
    assert 0 < peak < 300 << 10, f"{peak} KiB"
    logs = sum(path.stat().st_size for path in (run.output / "logs").iterdir())
    assert logs < 140 << 20


def test_ignores_sigterm(run_script):
    run = run_script(
        """
        import hetero, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stream = hetero.Stream()
        for batch in stream:
            if stream.rank == 1 and batch.step == 3 and stream.restart_count == 0:
                raise RuntimeError("now the other one has to end")
            if stream.rank == 0 and batch.step == 3 and stream.restart_count == 0:
                time.sleep(1000)
        """,
        training__epochs=1,
    )
    report = run.succeed()
    assert report["scriptRestarts"] == 1


@pytest.mark.parametrize("detached", [pytest.param(False, marks=pytest.mark.full), True])
@pytest.mark.parametrize("end", ["well", "killed"])
def test_leaves_child_processes(run_script, detached, end):
    run = run_script(
        f"""
        import hetero, os, pathlib, subprocess, time
        stream = hetero.Stream()
        subprocess.Popen(["sleep", "1000"], start_new_session={detached})
        if {detached} and os.fork() == 0:  # a daemon: its parent is gone, too
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        for batch in stream:
            (pathlib.Path(os.environ["PROOF_RECORDS"]) / f"step-{{batch.step}}").touch()
            time.sleep(0.02)
        """,
        training__epochs=1,
    )
    if end == "killed":
        wait_for(lambda: (run.records / "step-3").exists(), "step 3", while_running=run.process)
        run.process.send_signal(signal.SIGINT)
        run.wait()
        wait_for(lambda: not run.living(), "the end of every process", 20)
    else:
        run.succeed()


# --- What the package refuses ---


def test_refusals_of_the_package(run_script):
    """One script tries all of it, is told each by name, and trains on: a refusal harms nothing."""
    run = run_script(
        """
        import json, os, pathlib, pickle, threading
        import hetero, torch
        from torch.utils.data import DataLoader

        stream = hetero.Stream()
        said = {}

        def attempt(name, action):
            try:
                action()
                said[name] = "nothing"
            except Exception as error:
                said[name] = f"{type(error).__name__}: {error}"

        attempt("random access", lambda: stream[3])
        attempt("pickle", lambda: pickle.dumps(stream))
        attempt("workers", lambda: next(iter(DataLoader(stream, batch_size=None, num_workers=2))))
        attempt("second stream", lambda: hetero.Stream())
        loop = iter(stream)
        batches = [next(loop), next(loop)]
        attempt("late state", lambda: stream.load_state_dict({"format": 1, "step": 9}))
        thread = threading.Thread(target=lambda: attempt("second thread", lambda: next(loop)))
        thread.start()
        thread.join()
        other = iter(stream)
        batches.append(next(other))
        attempt("two loops", lambda: next(loop))
        steps = [batch.step for batch in batches]
        for epoch in stream.epochs():
            steps += [batch.step for batch in epoch]
        assert steps == list(range(75)), steps
        for _ in range(10):  # too many epochs
            steps += [batch.step for batch in stream]
        assert steps == list(range(75)), steps
        attempt("past the end", lambda: next(iter(stream)))
        stream.close()
        attempt("closed", lambda: stream.state_dict())
        (pathlib.Path(os.environ["PROOF_RECORDS"]) / f"said-{stream.rank}").write_text(json.dumps(said))
        """,
        roles__gpu__replicas=1,
    )
    run.succeed()
    said = json.loads((run.records / "said-0").read_text())
    print(json.dumps(said, indent=1))
    assert "num_workers=0" in said.pop("workers")
    assert said.pop("past the end").startswith("StopIteration")
    assert "another loop" in said.pop("two loops")
    assert "thread" in said.pop("second thread")
    for name, text in said.items():
        assert text.split(":")[0] in ("MisuseError", "StreamFailed", "ProtocolError"), (name, text)


def test_state_inside_a_step(run_script):
    run = run_script(
        """
        import hetero
        stream = hetero.Stream()
        steps = set()
        for batch in stream:
            if batch.place.micro == 0:
                try:
                    stream.state_dict()
                except hetero.MisuseError as error:
                    assert "gradientAccumulationSteps" in str(error)
                    steps.add(batch.step)
            elif batch.place.last_of_step:
                assert stream.state_dict()["step"] == batch.step + 1
        assert len(steps) == stream.total_steps
        """,
        training__gradientAccumulationSteps=2,
        training__epochs=1,
    )
    assert run.succeed()["steps"] == 7


def test_scripts_see_no_secrets(run_script):
    run = run_script(
        """
        import json, os, pathlib
        import hetero
        stream = hetero.Stream()
        names = {name: value for name, value in os.environ.items() if name.startswith("HETERO")}
        (pathlib.Path(os.environ["PROOF_RECORDS"]) / f"environment-{stream.rank}").write_text(json.dumps(names))
        assert int(os.environ["RANK"]) == stream.rank
        assert int(os.environ["WORLD_SIZE"]) == stream.world_size == 2
        for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            assert os.environ[name], name
        assert os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and os.environ["TORCHELASTIC_RUN_ID"]
        for epoch in stream.epochs():
            for batch in epoch:
                pass
        """,
        training__epochs=1,
    )
    run.succeed()
    names = set(json.loads((run.records / "environment-0").read_text()))
    assert names <= {
        "HETERO_STREAM_SOCKET",
        "HETERO_JOB_NAME",
        "HETERO_JOB_UID",
        "HETERO_BIN_DIR",
        "HETERO_PYTHON_PACKAGE",
    }, names
