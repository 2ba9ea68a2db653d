"""What a script reports."""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, Mapping

from .errors import MisuseError

_MOST_NUMBERS = 64
_LONGEST_NAME = 64


def numbers_of(values: Mapping[str, Any]) -> Dict[str, float]:
    """Plain numbers by name. What is not finite is left out and said: there is no such number in JSON."""
    if len(values) > _MOST_NUMBERS:
        raise MisuseError(f"{len(values)} numbers are reported at once, more than {_MOST_NUMBERS}")
    numbers = {_name(name): _number(name, value) for name, value in values.items()}
    for name in [name for name, number in numbers.items() if not math.isfinite(number)]:
        print(f"hetero: '{name}' is {numbers.pop(name)} and is not reported", file=sys.stderr, flush=True)
    return numbers


def _name(name: str) -> str:
    if len(name.encode()) > _LONGEST_NAME:
        raise MisuseError(
            f"the name '{name[:_LONGEST_NAME]}...' of a reported number is longer than {_LONGEST_NAME} bytes"
        )
    return name


def _number(name: str, value: Any) -> float:
    item = getattr(value, "item", None)
    if callable(item):
        try:
            value = item()
        except (ValueError, RuntimeError, TypeError):
            raise MisuseError(f"'{name}' has more than one element; report one number, such as its mean()") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MisuseError(f"'{name}' is a {type(value).__name__}; only numbers can be reported")
    return float(value)
