"""What every metric function and every entry of the table promises."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import subprocess
import sys
from typing import get_args

import pytest

from shiftproof import catalog, metrics
from shiftproof.metrics.table import Unit

FUNCTIONS = [name for name in dir(metrics) if inspect.isfunction(getattr(metrics, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_metric_works_a_case_by_hand(name: str) -> None:
    assert doctest.DocTestFinder(recurse=False).find(getattr(metrics, name), name)[0].examples


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_options_of_a_metric_are_named_where_they_are_given(name: str) -> None:
    parameters = inspect.signature(getattr(metrics, name)).parameters.values()
    options = [parameter for parameter in parameters if parameter.default is not inspect.Parameter.empty]
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


@pytest.mark.parametrize("name", catalog.METRICS)
def test_an_entry_has_a_title_a_sentence_a_unit_and_a_direction(name: str) -> None:
    info = metrics.metric_info(name)
    assert info.title
    assert info.description.endswith(".")
    assert info.unit in get_args(Unit)
    assert info.direction in ("high", "low", None)


def test_no_two_entries_have_the_same_title() -> None:
    titles = [metrics.metric_info(name).title for name in catalog.METRICS]
    assert len(set(titles)) == len(titles)


def loads(code: str, library: str) -> bool:
    """Whether a library is loaded in a fresh process after some code."""
    ran = subprocess.run([sys.executable, "-c", f"import sys\n{code}\nsys.exit({library!r} in sys.modules)"], check=False)
    return bool(ran.returncode)


def test_importing_the_metrics_does_not_load_scipy() -> None:
    assert not loads("from shiftproof import metrics\nfor name in dir(metrics): getattr(metrics, name)", "scipy")


def test_the_table_of_metrics_is_read_without_numpy() -> None:
    assert not loads("from shiftproof.metrics.table import metric_info\nmetric_info('auroc')", "numpy")
    assert loads("from shiftproof.metrics import auroc", "numpy")


def test_no_public_name_is_hidden_by_a_module_of_the_same_name() -> None:
    assert not set(dir(metrics)) & {module.name for module in pkgutil.iter_modules(metrics.__path__)}


def test_only_means_that_leave_out_what_was_trained_with_are_called_unseen() -> None:
    assert metrics.metric_info("unseen_mean_corrupted_error").unseen
    assert not metrics.metric_info("mean_corrupted_error").unseen
    assert not metrics.metric_info("unseen_objects_rate").unseen, "a plug-in's name says nothing of training"
