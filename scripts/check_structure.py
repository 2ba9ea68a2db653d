#!/usr/bin/env python3
"""Holds the tree to scripts/dependencies.txt: who may include whom, and no circles.

  scripts/check_structure.py             # check; 1 when something does not hold
  scripts/check_structure.py --suggest   # print the table that today's code needs
  scripts/check_structure.py --write     # print the table into docs/architecture.md

The table and the code must agree both ways: an include that no row allows fails, and so does an entry that nothing
needs any more. CMake's link lines may name no more than the includes. No file of the product has more than 400 lines,
and the median source stays below 110.
"""

import argparse
import os
import pathlib
import re
import statistics
import sys

sys.dont_write_bytecode = True  # no caches beside the scripts
from structure import document, suggestion
from structure.circles import circles_of, way_around
from structure.table import TABLE, TableError, read_table
from structure.tree import SOURCES, Tree, fits, folder_of, is_product

MOST_LINES = 400
MEDIAN_BELOW = 110
TARGET = re.compile(r"hetero_(library|program)\(\s*([\w-]+)([^()]*)\)")
ALIAS = re.compile(r"add_library\((hetero::\w+) ALIAS")


def check_includes(tree):
    table, needed = tree.table, set()
    for path, uses in tree.uses.items():
        if not is_product(path):
            continue
        folder = folder_of(path)
        row = table.rows.get(folder)
        if row is None:
            yield (path, 1, f"{folder} has no row in {TABLE}: add one that says what it may include")
            continue
        here = f"{TABLE}:{row.line}"
        for use in uses:
            if use.name == folder:
                continue
            if not use.name:
                yield (path, use.line, f"{use.text}: neither a file of this tree nor of a known library; write the path "
                       f"from the root of the tree, or name the library under [libraries] in {TABLE}")
            elif use.name not in row.allowed:
                yield (path, use.line, f"{use.text}: {folder} may not use {use.name} ({here}); move the code, pass it what "
                       "it needs as a value or an interface, or change the row if the design has changed")
            elif not fits(path, row.allowed[use.name]):
                yield (path, use.line, f"{use.text}: in {folder} only {', '.join(row.allowed[use.name])} may use {use.name} "
                       f"({here}); call that file's functions, or add this one to the row")
            else:
                needed.add((folder, use.name, os.path.basename(path)))
    yield from check_unused(table, needed)


def check_unused(table, needed):
    known = {name for _, name, _ in needed}
    for folder, row in table.rows.items():
        for name, files in row.allowed.items():
            users = [file for user, used, file in needed if (user, used) == (folder, name)]
            if not users:
                yield (TABLE, row.line, f"nothing in {folder} uses {name} any more: take it out of the row")
                continue
            for file in files:
                if not any(fits(user, (file,)) for user in users):
                    yield (TABLE, row.line, f"{file} in {folder} does not use {name} any more: take it out of the row")
    for name in [*table.libraries, *table.calls]:
        if name not in known and name != "system":
            yield (TABLE, 1, f"nothing uses {name} any more: take its line out")


def check_order(table):
    """The rows stand in layers, each folder below those that it includes."""
    places = {folder: place for place, folder in enumerate(table.rows)}
    for folder, row in table.rows.items():
        for name in row.allowed:
            together = any({folder, name} <= component for component in table.circles)
            if places.get(name, -1) > places[folder] and not together:
                yield (TABLE, row.line, f"{folder} includes {name}, so its row belongs below that one")


def check_circles(tree):
    files = {path: {use.file for use in uses if use.file} for path, uses in tree.uses.items()}
    for path in files:
        if path in files[path]:
            yield (path, 1, "includes itself")
    for component in circles_of(files):
        way = way_around(files, component)
        yield (min(component), 1, f"files include one another: {way}; forward-declare, or move what both need into a third")
    folders, named = tree.folder_edges(), dict(tree.table.circles)
    for component in circles_of(folders):
        if named.pop(frozenset(component), None) is None:
            way = way_around(folders, component)
            last, first = way.split(" -> ")[-2:]
            use = next(use for path, uses in tree.uses.items() for use in uses
                       if folder_of(path) == last and use.name == first)
            yield (use.path, use.line, f"{use.text}: folders include one another: {way}; move what both need into a lower "
                   f"folder, or name all of {' '.join(sorted(component))} in a line under [circles] in {TABLE}")
    for component, line in named.items():
        yield (TABLE, line, f"{' '.join(sorted(component))} do not all include one another: correct the line or remove it")


def check_links(tree):
    """CMake links no more than the rows allow of the folders whose sources one CMakeLists.txt names."""
    folders, lines = {}, []
    for path, text in tree.link_files.items():
        text = "\n".join(line.split("#")[0] for line in text.splitlines())
        folders.update({alias: {folder_of(path)} for alias in ALIAS.findall(text)})
        of_file = set()
        for found in TARGET.finditer(text):
            kind, name, words = found[1], found[2], found[3].split()
            own = {folder_of(os.path.normpath(os.path.join(os.path.dirname(path), word)))
                   for word in words if word.endswith(SOURCES)}
            of_file |= own
            if kind == "library":
                folders[f"hetero::{name}"] = own
            lines.append((path, text.count("\n", 0, found.start()) + 1, name, words, of_file))
    libraries = {target: name for name, library in tree.table.libraries.items() for target in library.targets}
    for path, line, name, words, own in lines:
        allowed = own.union(*(tree.table.rows[folder].allowed for folder in own if folder in tree.table.rows))
        for word in words:
            library = libraries.get(word) or libraries.get(word.split("::")[0] + "::*")
            linked = folders.get(word) or {library}
            if linked != {None} and not linked & allowed:
                yield (path, line, f"{name} links {word}, but no row of {', '.join(sorted(own))} in {TABLE} allows "
                       f"{' '.join(sorted(linked))}: take it out of the link line")


def check_sizes(tree):
    product = {path: len(lines) for path, lines in tree.lines.items() if is_product(path)}
    for path, count in product.items():
        if count > MOST_LINES:
            yield (path, count, f"{count} lines, {MOST_LINES} at most: split it where it is about two things")
    sources = [count for path, count in product.items() if path.endswith(SOURCES)]
    if sources and statistics.median(sources) >= MEDIAN_BELOW:
        yield (TABLE, 1, f"the median source has {statistics.median(sources):g} lines, {MEDIAN_BELOW} is too many: split "
               "the largest ones")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suggest", action="store_true", help="print the table that today's code needs")
    parser.add_argument("--write", action="store_true", help=f"print the table into {document.DOCUMENT}")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    root = arguments.root
    try:
        table = read_table(root)
        tree = Tree(root, table)
        if arguments.suggest:
            print("\n".join(suggestion.suggest(tree, (root / TABLE).read_text())))
            return 0
        if arguments.write:
            document.write(root, table)
        findings = [*check_includes(tree), *check_order(table), *check_circles(tree), *check_links(tree), *check_sizes(tree),
                    *document.check(root, table)]
    except TableError as error:
        print(error, file=sys.stderr)
        return 1
    for path, line, message in findings:
        print(f"{path}:{line}: {message}", file=sys.stderr)
    if not findings:
        print(f"structure: {len(table.rows)} folders hold to {TABLE}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
