"""What a script reports."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional

from .errors import MisuseError

_MOST_NUMBERS = 64
_LONGEST_NAME = 64


def numbers_of(values: Mapping[str, Any]) -> Dict[str, Optional[float]]:
    """Plain numbers by name; None for what is not finite, which JSON has no number for."""
    if len(values) > _MOST_NUMBERS:
        raise MisuseError(f"{len(values)} numbers are reported at once, more than {_MOST_NUMBERS}")
    return {_name(name): _number(name, value) for name, value in values.items()}


def _name(name: str) -> str:
    if len(name.encode()) > _LONGEST_NAME:
        raise MisuseError(
            f"the name '{name[:_LONGEST_NAME]}...' of a reported number is longer than {_LONGEST_NAME} bytes"
        )
    return name


def _number(name: str, value: Any) -> Optional[float]:
    item = getattr(value, "item", None)
    if callable(item):
        try:
            value = item()
        except (ValueError, RuntimeError, TypeError):
            raise MisuseError(f"'{name}' has more than one element; report one number, such as its mean()") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MisuseError(f"'{name}' is a {type(value).__name__}; only numbers can be reported")
    number = float(value)
    return number if math.isfinite(number) else None
