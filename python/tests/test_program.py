"""Jobs that the package starts, and what it says about this machine."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

import hetero
from hetero import doctor, program

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def run(*arguments, **options):
    environment = dict(os.environ, PYTHONPATH=str(SOURCE / "python"), **options.pop("environment", {}))
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=False, **options)


def test_one_version():
    header = (SOURCE / "base/version.h").read_text()
    assert re.search(r'kVersion\[\] = "(.*)"', header).group(1) == hetero.__version__


def test_run_local(manifest, tmp_path, capsys):
    job = json.loads(manifest().read_text())
    job["spec"]["training"]["script"] = {
        "command": [sys.executable, "-c", "import hetero; [list(e) for e in hetero.Stream().epochs()]"]
    }
    report = hetero.run_local(job, overrides={"training.maxSteps": 7}, output=tmp_path / "out")
    assert (report["state"], report["steps"]) == ("Succeeded", 7)
    assert "report.json" in capsys.readouterr().out


def test_all_steps_are_all_there_is(manifest, tmp_path):
    """A loop that counts steps, as frameworks do, never asks beyond the last one."""
    text = (
        "import hetero; s = hetero.Stream(); loop = (b for e in s.epochs() for b in e); [next(loop) for _ in range(39)]"
    )
    path = manifest(lambda spec: spec["training"]["script"].update(command=[sys.executable, "-c", text]))
    assert hetero.run_local(path, output=tmp_path / "out")["steps"] == 39
    log = (tmp_path / "out/logs/gpu-0.log").read_text()
    assert "script ended" in log and "before its stream" not in log, log


def test_run_local_fails(manifest, tmp_path):
    path = manifest(
        lambda spec: spec["training"]["script"].update(command=[sys.executable, "-c", "raise SystemExit(3)"])
    )
    with pytest.raises(hetero.ProgramError, match=f"exit code 1; its logs are in {tmp_path}/out"):
        hetero.run_local(path, output=tmp_path / "out")
    with pytest.raises(hetero.ProgramError, match="exit code 2"):
        hetero.run_local(path, overrides={"training.batchSizePerWorker": 0})
    with pytest.raises(hetero.MisuseError, match="no manifest"):
        hetero.run_local(tmp_path / "nothing.yaml")


def test_a_bad_manifest_is_said(manifest, capfd):
    with pytest.raises(hetero.ProgramError, match="it said why above"):
        hetero.Stream(manifest(lambda spec: spec["training"].update(batchSizePerWorker=-1)))
    assert "batchSizePerWorker" in capfd.readouterr().err


def processes_of(folder):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


@pytest.mark.parametrize("end", ["exit", "exception", "kill"])
def test_the_job_ends_with_the_script(manifest, tmp_path, end):
    """Nothing of a job that a script has started is left when it is gone, however it went."""
    text = f"""
import os, sys, hetero
stream = hetero.Stream({str(manifest())!r}, output={str(tmp_path / "out")!r})
next(iter(stream))
print("READY", flush=True)
if {end!r} == "kill":
    sys.stdin.read()
if {end!r} == "exception":
    raise ValueError("on purpose")
"""
    with subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as script:
        assert b"READY" in script.stdout.readline()
        if end == "kill":
            script.send_signal(signal.SIGKILL)
    assert script.returncode == {"exit": 0, "exception": 1, "kill": -9}[end]
    deadline = time.monotonic() + 60
    while processes_of(tmp_path / "out") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(tmp_path / "out") == []


def test_doctor():
    said = run("-m", "hetero", "doctor")
    assert said.returncode == 0, said.stdout
    assert f"hetero {hetero.__version__}" in said.stdout
    assert f"hetero-runtime {hetero.__version__}" in said.stdout
    assert run("-m", "hetero").returncode == 2


def test_doctor_of_a_job_that_is_over(monkeypatch, capsys):
    monkeypatch.setenv("HETERO_STREAM_SOCKET", "/nowhere/s")
    monkeypatch.setattr(doctor, "_libraries", lambda: ())  # they take seconds to import
    assert doctor.run() == 1
    assert "BAD $HETERO_STREAM_SOCKET names /nowhere/s, where nothing listens" in capsys.readouterr().out


def test_a_cell_that_is_run_again(manifest, tmp_path):
    """The stream that the variable still holds makes room for its successor."""
    path = manifest()
    first = hetero.Stream(path, output=tmp_path / "out")
    loop = iter(first)
    next(loop)
    with hetero.Stream(path, output=tmp_path / "out") as second:
        assert next(iter(second)).step == 0
        with pytest.raises(hetero.StreamFailed, match="closed"):
            next(loop)


def test_which_program(monkeypatch, tmp_path):
    monkeypatch.setenv("HETERO_RUNTIME", str(tmp_path))
    with pytest.raises(hetero.ProgramError, match="HETERO_RUNTIME"):
        program.runtime()
    assert program.arguments({"a.b": 3, "c": [{"op": "Cast"}], "d": "x"}) == [
        "--set",
        "a.b=3",
        "--set",
        'c=[{"op": "Cast"}]',
        "--set",
        "d=x",
    ]
