"""Environments of Python for what benchmarks compare with, none of which the project itself needs."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import venv

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PYTHON = SOURCE / ".deps/python/bin/python"  # scripts/setup_python.sh
LEFT_SECONDS = 60


def install(place: pathlib.Path, requirements: pathlib.Path) -> pathlib.Path:
    """Python with `requirements`, which name versions and hashes, and with what the tests' Python has. It is left at
    `place` for the next time."""
    stamp = place / "installed.txt"
    if not (stamp.exists() and stamp.read_bytes() == requirements.read_bytes()):
        venv.create(place, with_pip=False, clear=True)
        packages = next(place.glob("lib/python3*/site-packages"))
        (packages / "tests.pth").write_text(f"{next(PYTHON.parents[1].glob('lib/python3*/site-packages')).resolve()}\n")
        (packages / "lazy_binding.pth").write_text("import os, sys; sys.setdlopenflags(os.RTLD_LAZY)\n")
        subprocess.run(
            [sys._base_executable, "-m", "pip", "--python", place / "bin/python", "install", "--quiet", "--no-deps"]
            + ["--no-compile", "--disable-pip-version-check", "--root-user-action=ignore", "--require-hashes"]
            + ["-r", requirements],
            check=True,
        )
        stamp.write_bytes(requirements.read_bytes())
    return place / "bin/python"


def cpu_seconds(command, **options) -> float:
    """CPU seconds of a process and of all that descend from it, whoever waits for them: what its control group has used
    when all have ended, for which they have a minute."""
    group = _new_group()
    try:
        with tempfile.TemporaryFile() as said:
            join = f"echo $$ > {group / 'cgroup.procs'} && exec \"$@\""
            done = subprocess.run(["sh", "-c", join, "sh", *command], stdout=said, stderr=subprocess.STDOUT, **options)
            if done.returncode:
                said.seek(0)
                sys.exit(said.read().decode(errors="replace"))
        deadline = time.monotonic() + LEFT_SECONDS
        while (group / "cgroup.procs").read_text():
            if time.monotonic() > deadline:
                sys.exit(f"bench: {command[0]} has left processes that do not end")
            time.sleep(0.05)
        if (group / "cpuacct.usage").exists():
            return int((group / "cpuacct.usage").read_text()) / 1e9
        return int((group / "cpu.stat").read_text().split()[1]) / 1e6  # usage_usec
    finally:
        group.rmdir()


def _new_group() -> pathlib.Path:
    """A control group of its own: of version 1 where the machine accounts by that, else of version 2."""
    for root in ("/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"):
        if pathlib.Path(root, "cgroup.procs").exists():
            group = pathlib.Path(root, f"bench-{os.getpid()}")
            try:
                group.mkdir()
            except OSError as error:
                sys.exit(f"bench: CPU time is counted by control groups, and this one cannot be made: {error}")
            return group
    sys.exit("bench: no control groups below /sys/fs/cgroup that count CPU time")
