"""A fitted detector as arrays and plain values, and back: it scores elsewhere, without the training images."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept, UnknownName
from shiftproof.ood import Ensemble, ReadyDetector, detector_of, parameters_of, ready
from shiftproof.ood.entry import Fitted
from shiftproof.types import Fact

Arrays: TypeAlias = dict[str, NDArray[Any]]

ENSEMBLE = ("means", "spreads")


class KeptDetector(NamedTuple):
    """A detector by its name, with what it learned: arrays by name, and plain values that go into JSON."""

    plain: dict[str, Any]
    arrays: Arrays


def keep_detector(detector: ReadyDetector, *, prefix: str = "detector") -> KeptDetector:
    """The detector as data; NotKept where it is made of something else."""
    told: dict[str, Any] = {"name": detector.name, "preset": detector.preset, "parameters": dict(detector.parameters)}
    arrays: Arrays = {}
    if isinstance(detector.score, Ensemble):
        members = [
            keep_detector(member, prefix=f"{prefix}.{place}") for place, member in enumerate(detector.score.ready_members)
        ]
        arrays = {name: values for member in members for name, values in member.arrays.items()}
        scales = {name: list(getattr(detector.score, name)) for name in ENSEMBLE}
        return KeptDetector({**told, "members": [member.plain for member in members], **scales}, arrays)
    if isinstance(detector.score, Fitted):
        plain: dict[str, Any] = {}
        for name, value in _parts(detector.score, prefix):
            if isinstance(value, np.ndarray):
                arrays[name] = value
            else:
                plain[name] = value
        told["fitted"] = plain
    return KeptDetector(told, arrays)


def detector_from(
    plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, prefix: str = "detector"
) -> ReadyDetector:
    """The detector again; BadInput where something is missing or is not what it should be.

    Which class a fitted detector is of, its entry in the catalog says, never the data.
    """
    try:
        name, preset, parameters = plain["name"], plain["preset"], dict(plain["parameters"])
        if not isinstance(name, str) or not isinstance(preset, str):
            raise TypeError("its name is not text")
        if "members" in plain:
            members = tuple(
                detector_from(one, arrays, prefix=f"{prefix}.{place}") for place, one in enumerate(plain["members"])
            )
            scales = [tuple(float(one) for one in plain[scale]) for scale in ENSEMBLE]
            if name != "+".join(member.name for member in members):
                raise ValueError("an ensemble is called after its members")
            if not (len(members) == len(scales[0]) == len(scales[1])) or not all(map(math.isfinite, sum(scales, ()))):
                raise ValueError("an ensemble has a scale for each member")
            return ReadyDetector(name, preset, parameters, Ensemble(members, *scales))
        entry = detector_of(name)
        if not entry.needs_training:
            own = {key: value for key, value in parameters.items() if key in parameters_of(name)}
            return ready(name, preset=preset, parameters=own)
        fitted = _made(get_type_hints(entry.function)["return"], prefix, {**plain["fitted"], **arrays})
        return ReadyDetector(name, preset, parameters, fitted, fitted.notes)
    except (UnknownName, KeyError, TypeError, ValueError, AttributeError) as problem:
        why = str(problem) if isinstance(problem, UnknownName) else repr(problem)
        raise BadInput(f"the detector is damaged: {why}") from problem


def _parts(value: Any, name: str) -> Iterator[tuple[str, NDArray[Any] | Fact | list[str]]]:
    """Every array and plain value in a dataclass or a named tuple, under the names of the fields that lead to it."""
    if isinstance(value, np.ndarray):
        yield name, np.ascontiguousarray(value)
    elif isinstance(value, np.generic | bool | int | float | str) or value is None:
        plain = value.item() if isinstance(value, np.generic) else value
        if isinstance(plain, float) and not math.isfinite(plain):
            raise NotKept(f"its {name.rpartition('.')[2]} is {plain}")
        yield name, plain
    elif dataclasses.is_dataclass(value):
        for one in dataclasses.fields(value):
            yield from _parts(getattr(value, one.name), f"{name}.{one.name}")
    elif hasattr(value, "_fields"):
        for field in value._fields:
            yield from _parts(getattr(value, field), f"{name}.{field}")
    elif isinstance(value, tuple) and all(isinstance(one, str) for one in value):
        yield name, list(value)
    else:
        raise NotKept(f"what it learned is kept in a {type(value).__name__}, not in arrays")


def _made(hint: Any, name: str, values: Mapping[str, Any]) -> Any:
    """A value of this type, of its parts by name."""
    kind: Any = next((one for one in get_args(hint) if dataclasses.is_dataclass(one)), hint)  # of several the first
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        fields = kind._fields if hasattr(kind, "_fields") else [one.name for one in dataclasses.fields(kind)]
        return kind(**{field: _made(hints[field], f"{name}.{field}", values) for field in fields})
    value = values[name]
    if isinstance(value, list):
        if not all(isinstance(one, str) for one in value):
            raise TypeError(f"{name} should be texts")
        return tuple(value)
    expected = hint if hint in (bool, int, float, str) else None
    if expected and not isinstance(value, (int, float) if expected is float else expected):
        raise TypeError(f"{name} should be of type {expected.__name__}, got {value!r}")
    if not expected and not isinstance(value, np.ndarray | str):
        raise TypeError(f"{name} should be an array, got {value!r}")
    return value
