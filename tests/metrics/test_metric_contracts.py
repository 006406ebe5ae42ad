"""What every metric of the catalog promises."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys

import pytest

from shiftproof import catalog, metrics


@pytest.mark.parametrize("name", catalog.METRICS)
def test_a_metric_is_exported_and_works_a_case_by_hand(name: str) -> None:
    metric = catalog.METRICS.load(name)
    assert getattr(metrics, name) is metric
    assert name in metrics.__all__
    assert doctest.DocTestFinder(recurse=False).find(metric, name)[0].examples


@pytest.mark.parametrize("name", catalog.METRICS)
def test_the_options_of_a_metric_are_named_where_they_are_given(name: str) -> None:
    parameters = inspect.signature(catalog.METRICS.load(name)).parameters.values()
    options = [parameter for parameter in parameters if parameter.default is not inspect.Parameter.empty]
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


def test_every_meaning_has_a_title_and_a_sentence_and_no_two_the_same_title() -> None:
    titles = [meaning.title for meaning in metrics.MEANINGS.values()]
    assert len(set(titles)) == len(titles)
    assert all(meaning.explanation.endswith(".") for meaning in metrics.MEANINGS.values())


def test_importing_the_metrics_does_not_load_scipy() -> None:
    code = "import sys, shiftproof.metrics; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
