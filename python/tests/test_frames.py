"""A report as tables: what is in which, in pure Python; and as pandas has it, where pandas is."""

import builtins
import importlib.util
import json
import re
import sys

import pytest
from conftest import SOURCE

import hetero
from hetero.report_frames import COLUMNS, tables

REPORT = {
    "job": "small",
    "state": "Succeeded",
    "steps": 2,
    "attempts": [
        {"attempt": 1, "time": "2026-11-27T19:42:39.281Z", "seconds": 14.2},
        {"attempt": 2, "time": "2026-11-27T19:43:00Z", "seconds": 1.5, "cause": "pod lost"},
    ],
    "badSampleList": [{"sampleId": 3, "replacementId": 4, "reason": "a.jpg: no JPEG"}],
    "phaseSeconds": {"wait": 0.25, "forward": 1.5},
    "timeLines": [
        {"rank": 0, "points": [{"step": 1, "seconds": 0.5, "phaseSeconds": {"wait": 0.1}}, {"step": 2, "seconds": 1}]},
        {"rank": 1, "points": [{"step": 2, "seconds": 1.25, "phaseSeconds": {"wait": 0.2}}]},
    ],
    "evaluations": [],
    "lossCurve": [{"step": 1, "loss": 2.0, "secondsPerStep": 0.5}, {"step": 2, "loss": 1.0, "secondsPerStep": 0.5}],
    "workers": [
        {"name": "cpu-0", "role": "cpu", "samples": 10, "cpuSeconds": 2.0},
        {"name": "cpu-1", "role": "cpu", "samples": 6, "cpuSeconds": 1.0, "peakRssBytes": 7},
    ],
    "cpuSecondsPerSample": {"cpu": 0.1875},
    "faults": [],
    "storage": {"requests": 9, "orders": [{"shuffle": "Full", "requests": 8}]},
    "placement": [],
    "findings": [{"rule": "InputBound", "message": "waited", "since": "2026-11-27T19:43:00Z", "active": True}],
    "checks": [{"check": "of a later version", "severity": "Warning"}],
    "resources": [
        {
            "member": "cpu-0",
            "cpuSeconds": {"pipeline": 1.5},
            "timeLine": [{"seconds": 1, "cpuSeconds": {"pipeline": 0.5}}, {"seconds": 2, "cpuSeconds": {"python": 1}}],
        },
        {"member": "gpu-0", "cpuSeconds": {"train": 2.5}, "timeLine": []},
    ],
    "batchLives": [{"span": "work", "count": 9, "p50": 0.1, "p90": 0.2, "p95": 0.2, "p99": 0.3}],
    "streamDigest": None,
    "versions": {"hetero": "0.2.0", "cpu": "0.2.0"},
    "config": {
        "spec": {
            "roles": [
                {"name": "head", "type": "Head", "replicas": 1},
                {"name": "cpu", "type": "CPUWorker", "replicas": 2, "template": {"spec": {}}},
            ]
        }
    },
}


def test_tables_of_a_report():
    found = tables(REPORT)
    job = {
        "job": "small",
        "state": "Succeeded",
        "steps": 2,
        "phaseSeconds.wait": 0.25,
        "phaseSeconds.forward": 1.5,
        "cpuSecondsPerSample.cpu": 0.1875,
        "storage.requests": 9,
        "streamDigest": None,
        "versions.hetero": "0.2.0",
        "versions.cpu": "0.2.0",
    }
    assert found["job"] == (list(job), [job])
    assert found["timeLines"] == (
        ["rank", "step", "seconds", "phaseSeconds.wait"],
        [
            {"rank": 0, "step": 1, "seconds": 0.5, "phaseSeconds.wait": 0.1},
            {"rank": 0, "step": 2, "seconds": 1},
            {"rank": 1, "step": 2, "seconds": 1.25, "phaseSeconds.wait": 0.2},
        ],
    )
    assert found["roles"][1] == [
        {"name": "head", "type": "Head", "replicas": 1},
        {"name": "cpu", "type": "CPUWorker", "replicas": 2, "cpuSecondsPerSample": 0.1875, "version": "0.2.0"},
    ]
    assert found["storage.orders"][1] == [{"shuffle": "Full", "requests": 8}]
    assert found["resources"][1] == [
        {"member": "cpu-0", "cpuSeconds.pipeline": 1.5},
        {"member": "gpu-0", "cpuSeconds.train": 2.5},
    ]
    assert found["resources.timeLine"][1] == [
        {"member": "cpu-0", "seconds": 1, "cpuSeconds.pipeline": 0.5},
        {"member": "cpu-0", "seconds": 2, "cpuSeconds.python": 1},
    ]
    assert found["batchLives"][1] == REPORT["batchLives"]
    assert found["badSampleList"][1] == REPORT["badSampleList"]
    # Lists of a later version are tables, too.
    assert found["checks"] == (["check", "severity"], REPORT["checks"])
    assert set(found) == {"job", "checks", *COLUMNS}


def test_an_empty_list_has_its_columns():
    columns, rows = tables({"steps": 3, "faults": []})["faults"]
    assert (columns, rows) == (["time", "what", "recoverySeconds"], [])
    assert tables({"steps": 3})["evaluations"] == (["epoch", "step", "loss", "accuracy", "samples"], [])


def test_lists_and_columns_are_those_of_the_documentation():
    text = (SOURCE / "docs/report.md").read_text()
    lists = set(re.findall(r"^\| `(\w+)\[\]` \| object", text, re.MULTILINE))
    assert lists == set(COLUMNS) - {"roles", "resources.timeLine", "storage.orders"}
    for name in lists - {"workers"}:
        row = re.search(rf"^\| `{name}\[\]`.*$", text, re.MULTILINE).group(0)
        for column in COLUMNS[name]:
            assert f"`{column}`" in row, (name, column)
    of_workers = text[text.index("`workers[]`:") : text.index("## What survives")]
    assert all(f"`{column}`" in of_workers for column in COLUMNS["workers"])


def test_without_pandas(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.split(".")[0] == "pandas":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hetero.MisuseError, match=r"pandas is missing: pip install pandas \(the extra hetero\[pandas\]"):
        hetero.frames(REPORT)


@pytest.fixture
def pandas(request):
    if importlib.util.find_spec("pandas") is None:
        assert not request.config.getoption("--full"), "scripts/setup_python.sh --full installs pandas"
        pytest.skip("NOT RUN: there is no pandas; scripts/setup_python.sh --full installs it")
    return importlib.import_module("pandas")


def test_frames(pandas, tmp_path):
    frames = hetero.frames(REPORT)
    assert all(isinstance(frame, pandas.DataFrame) for frame in frames.values())
    assert frames["job"].iloc[0]["phaseSeconds.wait"] == 0.25
    assert frames["workers"].groupby("role")["samples"].sum().to_dict() == {"cpu": 16}
    assert frames["workers"]["peakRssBytes"].isna().tolist() == [True, False]
    assert frames["lossCurve"].set_index("step")["loss"].to_dict() == {1: 2.0, 2: 1.0}
    assert str(frames["attempts"]["time"].dt.tz) == "UTC"
    assert (frames["attempts"]["time"][1] - frames["attempts"]["time"][0]).total_seconds() == 20.719
    assert str(frames["findings"]["since"].dt.tz) == "UTC"
    assert list(frames["faults"].columns) == ["time", "what", "recoverySeconds"] and len(frames["faults"]) == 0
    path = tmp_path / "report.json"
    path.write_text(json.dumps(REPORT))
    for name, frame in hetero.frames(path).items():
        pandas.testing.assert_frame_equal(frame, frames[name])


def test_frames_of_a_clusters_result(pandas):
    """What hetero.report() returns: no list is in it."""
    frames = hetero.frames({"steps": 9, "streamDigest": "ab", "reportURI": "s3://bucket/report.json"})
    assert frames["job"].to_dict("records") == [
        {"steps": 9, "streamDigest": "ab", "reportURI": "s3://bucket/report.json"}
    ]
    assert all(len(frame) == 0 for name, frame in frames.items() if name != "job")


def test_what_is_no_report(pandas, tmp_path):
    with pytest.raises(hetero.MisuseError, match="cannot read the report"):
        hetero.frames(tmp_path / "nothing.json")
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(hetero.MisuseError, match="is no report"):
        hetero.frames(tmp_path / "list.json")


def test_frames_of_a_job(pandas, manifest, tmp_path):
    """A real one: each list of its report is there, as long as it is."""
    path = manifest(
        lambda spec: spec["training"]["script"].update(
            command=[sys.executable, "-c", "import hetero\nfor batch in (s := hetero.Stream()): s.report(loss=1.0)"]
        )
    )
    report = hetero.run_local(path, overrides={"training.maxSteps": 4}, output=tmp_path / "out")
    frames = hetero.frames(report)
    for name, value in report.items():
        if isinstance(value, list) and name != "timeLines":
            assert len(frames[name]) == len(value), name
    assert frames["job"].iloc[0]["steps"] == 4
    assert frames["roles"]["name"].tolist() == ["head", "cpu", "gpu"]
    assert frames["workers"]["samples"].sum() > 0
