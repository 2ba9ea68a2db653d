"""Reads the sources and what each of their lines uses outside its folder."""

import dataclasses
import os
import pathlib
import re

PRODUCT = ("base", "proto", "api", "operator", "runtime", "cli", "include", "examples")
ONE_ROW = ("proto", "include", "examples")  # their subfolders have no rows of their own
CHECKED = PRODUCT + ("tests",)  # tests may include anything, but not in circles
LANGUAGES = (".h", ".cpp", ".cu", ".cuh", ".proto")
SOURCES = (".cpp", ".cu")

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]|\s*import\s+(")([^"]+)";')


@dataclasses.dataclass
class Use:
    """One line of a source that needs something outside its folder."""
    path: str
    line: int
    text: str
    name: str  # of a folder or library, or "" where nobody knows the header
    file: str  # the included file of the tree, or ""


def folder_of(path):
    top = path.split("/")[0]
    return top if top in ONE_ROW else os.path.dirname(path)


def is_product(path):
    return path.split("/")[0] in PRODUCT


def fits(path, files):
    """Whether a row's list of files names this one: feed_test.cpp by its whole name, wire.h and wire.cpp by wire."""
    base = os.path.basename(path)
    return not files or base in files or base.split(".")[0] in files


class Tree:
    """The sources below a root and what they use."""

    def __init__(self, root, table):
        self.table = table
        self.lines = {}
        self.link_files = {}
        for top in CHECKED:
            for folder, _, names in os.walk(root / top):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), root)
                    if name.endswith(LANGUAGES):
                        self.lines[path] = pathlib.Path(root, path).read_text().splitlines()
                    elif name == "CMakeLists.txt" and is_product(path):
                        self.link_files[path] = pathlib.Path(root, path).read_text()
        self.uses = {path: list(self._uses(path)) for path in sorted(self.lines)}

    def folder_edges(self):
        """Of the product: folder -> the folders that its files include."""
        edges = {}
        for path, uses in self.uses.items():
            if is_product(path):
                folder = folder_of(path)
                edges.setdefault(folder, set()).update(use.name for use in uses if use.file and use.name != folder)
        return edges

    def _uses(self, path):
        calls = self.table.calls if is_product(path) else {}
        for number, line in enumerate(self.lines[path], 1):
            found = INCLUDE.match(line)
            if found:
                header = found[2] or found[4]
                text = f"#include {found[1]}{header}{'>' if found[1] == '<' else found[1]}" if found[1] else line.strip()
                file = self._file(header)
                name = folder_of(file) if file else self._library(header, found[1] == "<")
                if name != "system":
                    yield Use(path, number, text, name, file)
                continue
            for name, pattern in calls.items():
                called = pattern.search(line.split("//")[0])
                if called:
                    yield Use(path, number, called[0], name, "")

    def _file(self, header):
        generated = re.sub(r"(\.grpc)?\.pb\.h$", ".proto", header)
        for path in (header, f"include/{header}", f"proto/{generated}"):
            if path in self.lines:
                return path
        return ""

    def _library(self, header, angled):
        for name, library in self.table.libraries.items():
            if any(header == start or (start.endswith("/") and header.startswith(start)) for start in library.headers):
                return name
        is_standard = angled and "/" not in header and "." not in header
        return "system" if is_standard else ""
