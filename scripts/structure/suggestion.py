"""The table that today's code needs."""

import collections
import os

from structure.circles import circles_of
from structure.table import Row
from structure.tree import folder_of, is_product

WIDTH = 120
BY_FILE_NEVER = ("absl", "nlohmann", "torch")  # given to whole folders


def suggest(tree, text):
    """The table's text with the rows and circles of today's code; [libraries], [calls] and comments stay. An entry that
    names files, or none, goes on to do so; a new one of a library names its files where they are at most three."""
    lines, section = [], ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line.split("]")[0].strip("[")
        own = section in ("folders", "circles") and line and line[0] not in "[#"
        if not own:
            lines.append(line)
        if line.startswith("[circles]"):
            lines += sorted(" ".join(sorted(component)) for component in circles_of(tree.folder_edges()))
        if section == "folders" and not line:
            lines[-1:] = [*rows(tree), ""]
            section = ""
    return lines


def rows(tree):
    users = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, uses in tree.uses.items():
        for use in uses if is_product(path) else ():
            if use.name and use.name != folder_of(path):
                users[folder_of(path)][use.name].add(os.path.basename(path).split(".")[0])
    order = in_layers(tree)
    outside = [*tree.table.libraries, *tree.table.calls]
    lines = []
    for folder in order:
        old = tree.table.rows.get(folder, Row(0, {})).allowed
        entries = {True: [], False: []}
        for name in sorted(users[folder], key=lambda n: (order.index(n) if n in order else len(order), n)):
            files = sorted(users[folder][name])
            is_library = name in outside
            by_file = bool(old[name]) if name in old else is_library and len(files) <= 3 and name not in BY_FILE_NEVER
            entries[is_library].append(f"{name}({' '.join(files)})" if by_file else name)
        lines += wrapped(f"{folder}:", entries[False]) + wrapped("   ", entries[True])
    return lines


def in_layers(tree):
    """The product's folders, each after those that it includes, otherwise as the table has them."""
    present = {folder_of(path) for path in tree.uses if is_product(path)}
    left = [folder for folder in tree.table.rows if folder in present]
    left += sorted(present - set(left))
    edges = tree.folder_edges()
    together = {folder: component for component in circles_of(edges) for folder in component}
    ordered = []
    while left:
        ready = next(folder for folder in left
                     if not (edges.get(folder, set()) - together.get(folder, {folder})) & set(left))
        left.remove(ready)
        ordered.append(ready)
    return ordered


def wrapped(start, words):
    lines = [start]
    for entry in words:
        for word in [entry] if len(entry) < WIDTH - 20 else entry.split():
            if len(lines[-1]) + 1 + len(word) > WIDTH:
                lines.append("     ")
            lines[-1] += f" {word}"
    return [line.rstrip() for line in lines if line.strip()]
