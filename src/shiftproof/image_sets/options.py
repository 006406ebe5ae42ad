"""Options of image sets, which in a location are text."""

from __future__ import annotations

from shiftproof.errors import BadInput


def whole_number(option: str, value: int | str) -> int:
    """The number that an option names.

    >>> whole_number("seed", "7")
    7
    """
    try:
        return int(value)
    except ValueError as problem:
        raise BadInput(f"{option} should be a whole number, got {value!r}") from problem
