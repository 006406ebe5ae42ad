"""What a plan would take on so many machines: by hand, and by a probe that leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import shiftproof as sp
from shiftproof.errors import BadInput
from shiftproof.options import ForecastOptions
from shiftproof.runs.forecast import HANDED_OUT, Speed, forecast, forecasts
from shiftproof.types import Classifier


def test_twice_the_machines_take_half_the_hours_at_the_same_price() -> None:
    one, two = (forecast("some", 720_000, nodes, Speed(100.0, 50.0), 3.0) for nodes in (1, 2))
    assert (one.hours, two.hours) == (2.0, 1.0)
    assert one.price == two.price == 6.0
    assert one.gigabytes == two.gigabytes == pytest.approx(0.036)
    assert (one.limit, two.limit) == ("", "")


def test_beyond_what_one_process_hands_out_more_machines_only_cost() -> None:
    enough, more = (forecast("some", 10**9, nodes, Speed(HANDED_OUT / 10), 1.0) for nodes in (10, 20))
    assert enough.hours == more.hours == pytest.approx(10**9 / HANDED_OUT / 3600)
    assert (enough.limit, more.limit) == ("", "handing out")
    assert more.price == pytest.approx(2 * (enough.price or 0))
    assert more.gigabytes is None


def test_a_plan_that_is_done_is_left_out_and_published_benchmarks_stay() -> None:
    names = [one.work for one in forecasts(0, (2, 1, 2), Speed(1.0), None)]
    assert names == [name for name in ("ImageNet-C", "ImageNet-P", "ImageNet-22K") for _ in range(2)]
    assert next(forecasts(7, (1,), Speed(1.0), None)).work == "this plan"


def test_a_probe_counts_what_is_left_and_stores_nothing(
    colour_model: Classifier, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    photos, said = draw_photos(5), list[str]()
    store = tmp_path / "runs"
    planned = sp.plan(
        colour_model, photos, studies=["accuracy"], store=store, forecast=ForecastOptions(probe=True), tell=said.append
    )
    assert not list(store.rglob("*.safetensors"))
    (mine,) = [one for one in planned.forecasts if one.work == "this plan"]
    assert (mine.passes, mine.nodes) == (15, 1) == (planned[0]["to do"], 1)
    assert mine.gigabytes is not None
    assert 0 < mine.gigabytes < 1e-4
    assert any(line.startswith("this machine does ") for line in said)


def test_what_does_not_go_together_is_told() -> None:
    with pytest.raises(BadInput, match="with --rate, or let --probe measure this one"):
        ForecastOptions(nodes=(2,))
    with pytest.raises(BadInput, match="name one of them"):
        ForecastOptions(rate=3.0, probe=True)
    with pytest.raises(BadInput, match="rate"):
        ForecastOptions(rate=0.0)
