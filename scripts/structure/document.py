"""The table as Markdown, between two marker lines of docs/architecture.md."""

import re

from structure.table import TABLE, TableError

DOCUMENT = "docs/architecture.md"
BEGIN = "<!-- Printed by scripts/check_structure.py --write from scripts/dependencies.txt: edit that. -->"
END = "<!-- End of the printed table. -->"


def printed_table(table):
    def cell(row, names):
        return ", ".join(f"`{name}`" + (f" ({', '.join(f'`{file}`' for file in row.allowed[name])})"
                                        if row.allowed[name] else "") for name in row.allowed if name in names)

    outside = [*table.libraries, *table.calls]
    lines = ["| folder | may include | outside libraries, and in which files |", "|---|---|---|"]
    lines += [f"| `{name}` | {cell(row, table.rows)} | {cell(row, outside)} |" for name, row in table.rows.items()]
    for component in table.circles:
        lines += ["", f"These include one another: {', '.join(f'`{name}`' for name in sorted(component))}."]
    return [re.sub(" +", " ", line) for line in lines]


def split_document(text):
    """The document's lines before, between and after the markers."""
    lines = text.splitlines()
    if lines.count(BEGIN) != 1 or lines.count(END) != 1:
        raise TableError(f"{DOCUMENT}:1: the table belongs between the lines '{BEGIN}' and '{END}'")
    begin, end = lines.index(BEGIN), lines.index(END)
    return lines[:begin + 1], lines[begin + 1:end], lines[end:]


def check(root, table):
    before, middle, _ = split_document((root / DOCUMENT).read_text())
    wanted = ["", *printed_table(table), ""]
    if middle != wanted:
        different = next((i for i, (is_, should) in enumerate(zip(middle, wanted)) if is_ != should),
                         min(len(middle), len(wanted)))
        yield (DOCUMENT, len(before) + different + 1, f"is not what {TABLE} says: run scripts/check_structure.py --write")


def write(root, table):
    before, _, after = split_document((root / DOCUMENT).read_text())
    (root / DOCUMENT).write_text("\n".join([*before, "", *printed_table(table), "", *after]) + "\n")
