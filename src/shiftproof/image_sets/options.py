"""Options of image sets, which in a location are text."""

from __future__ import annotations

from shiftproof.errors import BadInput


def whole_number(option: str, value: int | str, *, least: int | None = None) -> int:
    """The number that an option names; BadInput where it is none, or too small.

    >>> whole_number("seed", "7")
    7
    """
    try:
        number = int(value)
    except ValueError as problem:
        raise BadInput(f"{option} should be a whole number, got {value!r}") from problem
    if least is not None and number < least:
        raise BadInput(f"{option} should be at least {least}, got {number}")
    return number


def number(option: str, value: float | str) -> float:
    """The number, whole or not, that an option names.

    >>> number("padding", "0.1")
    0.1
    """
    try:
        return float(value)
    except ValueError as problem:
        raise BadInput(f"{option} should be a number, got {value!r}") from problem


def yes_or_no(option: str, value: bool | str) -> bool:
    """What an option says that is either so or not.

    >>> yes_or_no("square", "True"), yes_or_no("square", "no")
    (True, False)
    """
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in known:
        raise BadInput(f"{option} should be true or false, got {value!r}")
    return known[str(value).lower()]
