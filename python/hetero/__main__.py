"""`python -m hetero`."""

from __future__ import annotations

import argparse
import sys

from . import doctor
from .version import __version__


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hetero", description="Batches of a HeteroTrainingJob for scripts")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    commands.add_parser("doctor", help="say what this package finds on this machine, and what is missing")
    parser.parse_args()
    return doctor.run()


if __name__ == "__main__":
    sys.exit(main())
