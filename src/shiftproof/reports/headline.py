"""The headline numbers of results as tables: printed, and as LaTeX or Markdown for a paper or a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import figure, has_too_few
from shiftproof.tables import Table, TextFormat, table_text
from shiftproof.types import Measurement, Results

SUMMARY_ABOUT = {"model", "dataset", "condition", "severity", "versus", "fact", "group", "scored"}


def format_results(results: Results, form: TextFormat) -> str:
    """The headline numbers as ``latex`` (booktabs) or ``markdown``; `Results.to_csv` and `to_pandas` have all of them."""
    return table_text(headline_tables(results), form)


def headline_measurements(results: Results) -> list[Measurement]:
    """The numbers of these tables."""
    return [one for some in _headlines(results) for one in some]


def _headlines(results: Results) -> tuple[list[Measurement], list[Measurement]]:
    found = [one for one in results.measurements if _is_headline(one)]
    return found, list(_of_detectors(results.measurements))


def headline_tables(results: Results) -> list[Table]:
    """The headline numbers, then the AUROC of OOD detectors; empty without any."""
    found, detectors = _headlines(results)
    left_open = _sampling_errors(results.measurements)
    return [
        Table(
            [{**_row(one, some), **_left_open(one, some, left_open)} for one in some],
            right=("value", "95 % CI", "images", "cases", THESE_PHOTOS),
        )
        for some in filter(None, (found, detectors))
    ]


def _is_headline(measurement: Measurement) -> bool:
    rule = metric_info(measurement.metric).headline
    return rule == "always" or (rule is None and set(measurement.about) <= SUMMARY_ABOUT)


def _of_detectors(measurements: Sequence[Measurement]) -> Iterator[Measurement]:
    """AUROC of each OOD detector at either goal: on the unchanged ID images, against all OOD datasets pooled."""
    found = [one for one in measurements if one.metric == "auroc" and one.about.get("id") == one.about["dataset"]]
    # the last OOD dataset is all of them pooled, where there are several
    last = {(one.about["dataset"], one.about["goal"]): one.about["ood"] for one in found}
    yield from (one for one in found if last[one.about["dataset"], one.about["goal"]] == one.about["ood"])


def _row(measurement: Measurement, beside: Sequence[Measurement]) -> dict[str, str]:
    info = metric_info(measurement.metric)
    keys = list(dict.fromkeys(key for one in beside for key in one.about))
    always = ("model", "dataset", "recipe")
    several = [key for key in keys if key in always or len({one.about.get(key) for one in beside}) > 1]
    return {
        **{key.replace("_", " "): str(measurement.about.get(key, "")) for key in several},
        "metric": info.title,
        "value": figure(measurement.value, info.unit),
        "95 % CI": interval_told(measurement),
        "images": f"{measurement.images:,}",
        **({"cases": _cases(measurement)} if any(_cases(one) != f"{one.images:,}" for one in beside) else {}),
    }


def interval_told(measurement: Measurement) -> str:
    """Both ends without the unit of the value beside them; empty where there is none."""
    if measurement.ends is None:
        return "too few" if has_too_few(measurement) else ""
    return " to ".join(_bare(figure(bound, metric_info(measurement.metric).unit)) for bound in measurement.ends)


def _cases(measurement: Measurement) -> str:
    return f"{measurement.images if measurement.clusters is None else measurement.clusters:,}"


THESE_PHOTOS = "exactly these photos"
"""The column of sampling errors."""

_Whose = frozenset[tuple[str, str | int]]


def _sampling_errors(measurements: Sequence[Measurement]) -> dict[tuple[str, _Whose], float]:
    """By the number that each is of, where only some cells were run."""
    return {
        (str(one.about["number"]), frozenset(item for item in one.about.items() if item[0] != "number")): one.value
        for one in measurements
        if one.metric == "sampling_error" and one.value > 0
    }


def _left_open(
    measurement: Measurement, beside: Sequence[Measurement], errors: Mapping[tuple[str, _Whose], float]
) -> dict[str, str]:
    found = {(one.metric, frozenset(one.about.items())) for one in beside}
    if not found & errors.keys():
        return {}
    error = errors.get((measurement.metric, frozenset(measurement.about.items())))
    return {THESE_PHOTOS: "" if error is None else f"± {_bare(figure(error, 'share'))}"}


def _bare(text: str) -> str:
    """A figure without its unit, which is printed already."""
    return text.removesuffix("points").removesuffix("%").strip()
