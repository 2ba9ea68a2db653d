"""Reads scripts/dependencies.txt: which folder may use which others, and which libraries."""

import dataclasses
import re

TABLE = "scripts/dependencies.txt"

ENTRY = re.compile(r"([\w./-]+)(?:\(([^()]*)\))?")


class TableError(Exception):
    """The table cannot be read."""


@dataclasses.dataclass
class Row:
    """What one folder may use: name of a folder or library -> names of files, none for all of them."""
    line: int
    allowed: dict[str, tuple[str, ...]]


@dataclasses.dataclass
class Library:
    headers: tuple[str, ...]  # an include begins with one of these
    targets: tuple[str, ...]  # CMake's names of it


@dataclasses.dataclass
class Table:
    libraries: dict[str, Library]
    calls: dict[str, re.Pattern]
    rows: dict[str, Row]
    circles: dict[frozenset[str], int]  # folders that include one another, and the line that says so


def logical_lines(text):
    """(number, line) with comments removed and indented lines joined to the one above."""
    joined = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].rstrip()
        if line.startswith(" ") and joined:
            joined[-1][1] += line
        elif line:
            joined.append([number, line])
    return joined


def read_table(root):
    table, section = Table({}, {}, {}, {}), None
    for number, line in logical_lines((root / TABLE).read_text()):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        name, colon, rest = line.partition(":")
        if section == "circles":
            table.circles[frozenset(line.split())] = number
        elif section not in ("libraries", "calls", "folders") or not colon:
            raise TableError(f"{TABLE}:{number}: expected 'name: ...' in [libraries], [calls] or [folders]: {line}")
        elif section == "libraries":
            headers, _, targets = rest.partition("|")
            table.libraries[name] = Library(tuple(headers.split()), tuple(targets.split()))
        elif section == "calls":
            table.calls[name] = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in rest.split()))
        elif name in table.rows:
            raise TableError(f"{TABLE}:{number}: {name} has a row already, in line {table.rows[name].line}")
        else:
            entries = ENTRY.findall(rest)
            table.rows[name] = Row(number, {entry: tuple(files.split()) for entry, files in entries})
            if len(table.rows[name].allowed) != len(entries):
                raise TableError(f"{TABLE}:{number}: {name} names one thing twice")
    return table
