"""Every block of code in docs/python.md is run, and the README's diff is the examples' own."""

import difflib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from proof.job import BIN, PACKAGE, RUNTIME, SOURCE, manifest

BLOCK = re.compile(r"(<!-- alone -->\n)?```(\w+)\n(.*?)```", re.DOTALL)
BLOCKS = [
    (bool(alone), kind, text, (SOURCE / "docs/python.md").read_text()[: found.start()].count("\n") + 1)
    for found in BLOCK.finditer((SOURCE / "docs/python.md").read_text())
    for alone, kind, text in [found.groups()]
]


def small(command):
    return manifest(
        command,
        roles__gpu__replicas=1,
        dataset__image={"height": 40, "width": 40, "channels": 3},
        dataset__classes=10,
        training__batchSizePerWorker=32,
        training__epochs=2,
        training__checkpoint={"uri": "file:///tmp/not-written-by-us", "everySteps": 2},
    )


def test_every_kind_of_block_is_known():
    assert {kind for _, kind, _, _ in BLOCKS} == {"python", "sh"}
    assert len(BLOCKS) >= 10


@pytest.mark.parametrize(
    "text",
    [pytest.param(text, id=f"line{line}") for alone, kind, text, line in BLOCKS if kind == "python" and not alone],
)
def test_block_in_a_job(start, tmp_path, text):
    path = tmp_path / "block.py"
    path.write_text(text)
    made = small([sys.executable, str(path)])
    made["spec"]["pipeline"][0]["size"] = {"height": 32, "width": 32}
    start(made).succeed()


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=f"line{line}") for alone, kind, text, line in BLOCKS if kind == "python" and alone]
)
def test_block_by_itself(tmp_path, text, request):
    if "hetero.frames" in text and importlib.util.find_spec("pandas") is None:
        assert not request.config.getoption("--full"), "scripts/setup_python.sh --full installs pandas"
        pytest.skip("NOT RUN: there is no pandas; scripts/setup_python.sh --full installs it")
    made = small(["true"])
    if "run_local" in text:
        script = tmp_path / "script.py"
        script.write_text("import hetero\nfor batch in hetero.Stream():\n    pass\n")
        made["spec"]["training"]["script"] = {"command": [sys.executable, str(script)]}
    (tmp_path / "job.yaml").write_text(json.dumps(made))
    subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path,
        check=True,
        timeout=120,
        env=dict(os.environ, PYTHONPATH=PACKAGE, HETERO_RUNTIME=str(RUNTIME)),
    )


@pytest.mark.full  # the gate runs these commands in test_examples.py and test_attach.py
@pytest.mark.parametrize(
    "text", [pytest.param(text, id=f"line{line}") for _, kind, text, line in BLOCKS if kind == "sh"]
)
def test_block_of_the_shell(tmp_path, text):
    """In a copy of the examples, and with another place for the pictures."""
    folder = tmp_path / "pytorch"
    shutil.copytree(SOURCE / "examples/pytorch", folder)
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("/tmp/pictures", str(tmp_path / "pictures")))
    (folder / "job.yaml").write_text((folder / "job.yaml").read_text().replace("epochs: 4", "maxSteps: 4"))
    text = text.replace("/tmp/pictures", str(tmp_path / "pictures")).replace(" --set training.epochs=1", "")
    subprocess.run(
        ["bash", "-euc", text],
        cwd=folder,
        check=True,
        timeout=200,
        env=dict(
            os.environ,
            PATH=f"{BIN}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            PYTHONPATH=PACKAGE,
            HETERO_RUNTIME=str(RUNTIME),
        ),
    )


def test_diff_in_the_readme():
    """Lines that the README shows as changed are changed, in this order; it leaves some out."""
    shown = re.search(r"```diff\n(.*?)```", (SOURCE / "README.md").read_text(), re.DOTALL).group(1).splitlines()
    before, after = (
        (SOURCE / "examples/pytorch" / name).read_text().splitlines() for name in ("train_dataloader.py", "train.py")
    )
    changes = iter(difflib.unified_diff(before, after, lineterm="", n=1000))
    for line in shown:
        if line.strip() == "...":
            continue
        assert any(change == line for change in changes), f"not in the diff, or not here: {line}"
