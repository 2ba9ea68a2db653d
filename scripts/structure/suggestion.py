"""The rows of the table that today's code needs."""

import collections
import os

from structure.table import Row
from structure.tree import folder_of, is_product

WIDTH = 120
BY_FILE_NEVER = ("absl", "nlohmann", "torch")  # given to whole folders


def suggest(tree):
    """The folders' rows as today's code needs them. An entry that names files, or none, goes on to do so; a new one of
    a library names its files where they are at most three."""
    users = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, uses in tree.uses.items():
        if is_product(path):
            users[folder_of(path)].update({})
            for use in uses:
                if use.name and use.name != folder_of(path):
                    users[folder_of(path)][use.name].add(os.path.basename(path).split(".")[0])
    order = [*tree.table.rows, *sorted(set(users) - set(tree.table.rows))]
    outside = [*tree.table.libraries, *tree.table.calls]
    lines = []
    for folder in order:
        old = tree.table.rows.get(folder, Row(0, {})).allowed
        entries = {True: [], False: []}
        for name in sorted(users.get(folder, ()), key=lambda n: (order.index(n) if n in order else 999, n)):
            files = sorted(users[folder][name])
            is_library = name in outside
            by_file = bool(old[name]) if name in old else is_library and len(files) <= 3 and name not in BY_FILE_NEVER
            entries[is_library].append(f"{name}({' '.join(files)})" if by_file else name)
        if folder in users:
            lines += wrapped(f"{folder}:", entries[False]) + wrapped("   ", entries[True])
    return lines


def wrapped(start, words):
    lines = [start]
    for entry in words:
        for word in [entry] if len(entry) < WIDTH - 20 else entry.split():
            if len(lines[-1]) + 1 + len(word) > WIDTH:
                lines.append("     ")
            lines[-1] += f" {word}"
    return [line.rstrip() for line in lines if line.strip()]
