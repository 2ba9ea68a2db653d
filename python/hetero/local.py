"""Whole jobs on this machine."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from . import program
from .errors import MisuseError, ProgramError

Manifest = Union[str, "os.PathLike[str]", Mapping[str, Any]]

_OUTPUT = re.compile(r"; output in (.+)$")


def run_local(
    manifest: Manifest,
    *,
    overrides: Optional[Mapping[str, Any]] = None,
    output: Union[str, "os.PathLike[str]", None] = None,
    arguments: Sequence[str] = (),
) -> Dict[str, Any]:
    """Runs a job to its end by `hetero-runtime local` and returns its report (report.json).

    `manifest`: a path, or the manifest itself as a dictionary, whose script then runs in the current folder unless it
    says otherwise. `overrides`: {"training.maxSteps": 10}. `output`: the folder for report and logs; by default the
    manifest's. `arguments`: further ones of `hetero-runtime local`. What the job says goes to sys.stdout. ProgramError
    when it does not succeed.
    """
    command = [program.runtime(), "local", *program.arguments(overrides or {}), *arguments]
    if output is not None:
        command += ["--output", os.fspath(output)]
    if isinstance(manifest, Mapping):
        with tempfile.TemporaryDirectory(prefix="hetero-") as folder:
            path = pathlib.Path(folder) / "job.json"  # JSON is YAML
            path.write_text(json.dumps(_with_folder(manifest)))
            return _run([*command, str(path)])
    if not pathlib.Path(manifest).is_file():
        raise MisuseError(f"there is no manifest {os.fspath(manifest)!r}")
    return _run([*command, os.fspath(manifest)])


def _with_folder(manifest: Mapping[str, Any]) -> Dict[str, Any]:
    copy: Dict[str, Any] = json.loads(json.dumps(manifest))
    script = copy.get("spec", {}).get("training", {}).get("script")
    if isinstance(script, dict):
        script.setdefault("workingDirectory", os.getcwd())
    return copy


def _run(command: Sequence[str]) -> Dict[str, Any]:
    folder: Optional[str] = None
    # Line by line through sys.stdout: a notebook shows that, but not what goes to the descriptor.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.decode(errors="replace")
            found = _OUTPUT.search(text.rstrip()) if folder is None else None
            folder = found.group(1) if found else folder
            sys.stdout.write(text)
            sys.stdout.flush()
    if process.returncode != 0:
        where = f"; its logs are in {folder}" if folder else ""
        raise ProgramError(f"the job ended with exit code {process.returncode}{where}")
    if folder is None:
        raise ProgramError("hetero-runtime local did not say where its output is; is it of another version?")
    report: Dict[str, Any] = json.loads((pathlib.Path(folder) / "report.json").read_text())
    return report
