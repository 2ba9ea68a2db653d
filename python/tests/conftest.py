"""The package's own tests: each process here is the script of a real job on this machine."""

import copy
import json
import os
import pathlib
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
os.environ.setdefault(
    "HETERO_RUNTIME",
    str(pathlib.Path(os.environ.get("HETERO_BIN_DIR", SOURCE / "build/release/bin")) / "hetero-runtime"),
)

import hetero  # noqa: E402

JOB = {
    "apiVersion": "training.hetero.dev/v1alpha1",
    "kind": "HeteroTrainingJob",
    "metadata": {"name": "package"},
    "spec": {
        "dataset": {
            "uri": "synthetic://",
            "samples": 100,
            "classes": 4,
            "image": {"height": 12, "width": 10, "channels": 3},
            "validation": {
                "uri": "synthetic://",
                "samples": 21,
                "classes": 4,
                "image": {"height": 12, "width": 10, "channels": 3},
            },
        },
        "pipeline": [{"op": "HorizontalFlip"}, {"op": "Normalize"}],
        "training": {
            "script": {"command": ["python3", "train.py"]},
            "batchSizePerWorker": 8,
            "epochs": 3,
            "seed": 5,
        },
        "roles": [
            {"name": "head", "type": "Head"},
            {"name": "cpu", "type": "CPUWorker", "replicas": 2},
            {"name": "gpu", "type": "GPUWorker", "replicas": 1, "gpusPerReplica": 0},
        ],
    },
}


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="what takes long, too: make test-full")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: takes long; runs with --full only")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--full"):
        for item in items:
            if "full" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="runs in make test-full"))


@pytest.fixture(autouse=True)
def arrays(request, monkeypatch):
    """Only the tests of PyTorch have it; to the others it is not imported, whatever ran before."""
    if request.module.__name__ != "test_torch":
        monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.fixture
def manifest(tmp_path):
    """Writes the small job, changed by a function, and gives its path."""

    def write(change=lambda spec: None, name="job.yaml"):
        job = copy.deepcopy(JOB)
        change(job["spec"])
        path = tmp_path / name
        path.write_text(json.dumps(job))  # JSON is YAML
        return path

    return write


@pytest.fixture
def open_stream(manifest, tmp_path):
    """Starts a job around this process: `open_stream(raw=True, overrides={...})`. All are ended with the test."""
    streams = []

    def begin(**options):
        folder = tmp_path / f"out-{len(streams)}"
        streams.append(hetero.Stream(options.pop("job", None) or manifest(), output=folder, **options))
        return streams[-1]

    yield begin
    for stream in streams:
        stream.close()
