"""The wheels of `make wheel`, installed where nothing else of this tree is."""

import json
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import hetero

pytestmark = pytest.mark.full

SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """Both wheels: the pure one, and the one for Linux."""
    folder = tmp_path_factory.mktemp("wheels")
    command = [SOURCE / "scripts/wheel.sh", os.environ["HETERO_RUNTIME"], folder]
    subprocess.run(command, check=True)
    return {name: folder / f"hetero-{hetero.__version__}-py3-none-{name}.whl" for name in ("any", "linux_x86_64")}


def test_the_pure_wheel_is_the_package(wheels):
    with zipfile.ZipFile(wheels["any"]) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("hetero/")}
        metadata = wheel.read(f"hetero-{hetero.__version__}.dist-info/METADATA").decode()
    package = SOURCE / "python/hetero"
    assert names == {f"hetero/{path.name}" for path in package.iterdir() if path.suffix in (".py", ".typed")}
    assert "Requires-Python: >=3.9" in metadata and "Requires-Dist: numpy" in metadata


def test_a_job_from_the_platform_wheel(wheels, manifest, tmp_path):
    """A fresh environment with numpy and the wheel alone trains, by the programs that the wheel holds."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = [sys._base_executable, "-m", "pip", "--python", environment / "bin/python"]
    subprocess.run([*pip, "install", "--quiet", "--no-index", "--no-deps", wheels["linux_x86_64"]], check=True)
    text = f"""
import hetero, json
with hetero.Stream({str(manifest())!r}, output={str(tmp_path / "out")!r}) as stream:
    ids = [int(i) for epoch in stream.epochs() for batch in epoch for i in batch.ids]
print(json.dumps([hetero.__file__, len(ids)]))
"""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("HETERO_", "PYTHON"))}
    plain["PYTHONPATH"] = str(pathlib.Path(__import__("numpy").__file__).parents[1])  # for numpy
    done = subprocess.run(
        [environment / "bin/python", "-c", text], env=plain, cwd=tmp_path, stdout=subprocess.PIPE, check=True
    )
    where, count = json.loads(done.stdout.splitlines()[-1])
    assert where.startswith(str(environment)) and count == 300
