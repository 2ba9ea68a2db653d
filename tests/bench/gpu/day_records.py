"""What the steps of a day have left: a file each, so that a later call goes on where one ended."""

import hashlib
import json
import os
import pathlib
import subprocess

PASSED, FAILED, NOT_RUN, NO_TIME = "passed", "FAILED", "NOT RUN", "NO TIME"


def commit_of(source):
    """The commit with a digest of what was changed since; None where git does not say."""

    def git(*arguments):
        return subprocess.run(["git", "-C", source, *arguments], check=True, capture_output=True).stdout

    try:
        commit = git("rev-parse", "--short=12", "HEAD").decode().strip()
        changed = git("diff", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{commit}-dirty-{hashlib.sha256(changed).hexdigest()[:8]}" if changed else commit


def write_whole(path, text):
    """A reader sees the old file or the whole new one."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.replace(new, path)


class Records:
    """Those of one origin: the commit, the machine's GPU and whether it was a rehearsal. None is kept of another."""

    def __init__(self, folder, origin):
        self.folder, self.origin = pathlib.Path(folder) / "steps", origin
        self.folder.mkdir(parents=True, exist_ok=True)

    def _path(self, step):
        return self.folder / (step.replace("/", "-") + ".json")

    def of(self, step):
        """The newest of a step, or None; what cannot be read is none."""
        try:
            record = json.loads(self._path(step).read_text())
        except (FileNotFoundError, ValueError):
            return None
        known = self.origin["commit"] is not None and isinstance(record, dict)
        return record if known and record.get("origin") == self.origin else None

    def write(self, record):
        write_whole(self._path(record["step"]), json.dumps({**record, "origin": self.origin}, indent=1))
