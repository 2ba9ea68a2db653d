import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from proof.job import LocalJob


@pytest.fixture
def start(tmp_path):
    """Starts a job in a folder of its own; all of them are ended with the test."""
    jobs = []

    def begin(job, *arguments, environment=None):
        jobs.append(LocalJob(tmp_path / str(len(jobs)), job, *arguments, environment=environment))
        return jobs[-1]

    yield begin
    for job in reversed(jobs):
        job.__exit__(RuntimeError, None, None)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="the long ones, too: make test-full")


def pytest_configure(config):
    config.addinivalue_line("markers", "full: takes long; runs with --full only")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--full"):
        return
    for item in items:
        if "full" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="runs in make test-full"))
