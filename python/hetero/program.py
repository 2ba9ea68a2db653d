"""Where hetero-runtime is."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from typing import Any, Iterator, List, Mapping

from .errors import ProgramError

VARIABLE = "HETERO_RUNTIME"
_NAME = "hetero-runtime"


def runtime() -> str:
    """The path of hetero-runtime: $HETERO_RUNTIME, the one in this package's wheel, of the checkout that this package
    lies in, or in PATH. ProgramError when there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or os.path.isdir(named):
            raise ProgramError(f"${VARIABLE} is {named!r}, which is no program; unset it or correct it")
        return os.path.abspath(named)
    for candidate in _beside():
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which(_NAME)
    if found:
        return found
    raise ProgramError(
        f"{_NAME} is not found: install the wheel that holds it (make wheel), build it (make build), or name it in "
        f"${VARIABLE}"
    )


def _beside() -> Iterator[pathlib.Path]:
    package = pathlib.Path(__file__).resolve().parent
    yield package / "runtime" / "bin" / _NAME  # a platform wheel
    yield package.parent.parent / "build" / "release" / "bin" / _NAME  # a checkout


def arguments(overrides: Mapping[str, Any]) -> List[str]:
    """`--set field=value` for each override. Values are YAML, of which JSON is a part."""
    import json

    given: List[str] = []
    for field, value in overrides.items():
        given += ["--set", f"{field}={value if isinstance(value, str) else json.dumps(value)}"]
    return given


def version(path: str) -> str:
    """What `hetero-runtime --version` says: "0.3.0 (ce2b346)"."""
    try:
        done = subprocess.run(
            [path, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{path} does not run: {error}") from None
    said = done.stdout.decode(errors="replace").strip()
    if done.returncode:
        raise ProgramError(f"{path} --version ended with {done.returncode}: {said}")
    return said[len(_NAME) + 1 :] if said.startswith(_NAME + " ") else said
