"""Does a recipe help, on what, and at what cost on clean images: its part of the report."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.wording import figure, span
from shiftproof.reports.page import Page, named
from shiftproof.reports.parts import Chart, Part, Section, Table
from shiftproof.reports.scatter_plot import Place, scatter_plot
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table, dot_chart, measurement_table
from shiftproof.reports.words import kept_together
from shiftproof.types import Finding, Measurement

GAIN, CHANGE, CHANCE, BY_SHIFT = "recipe_gain", "recipe_clean_change", "recipe_gain_p", "recipe_shift_gain"
NAMES = frozenset({GAIN, CHANGE, CHANCE, BY_SHIFT})


def draw_recipes(findings: Sequence[Finding], page: Page) -> Section:
    """The gain of each recipe against its cost, then shift by shift."""
    gains, changes = named(findings, GAIN), {_recipe(one): one for one in named(findings, CHANGE)}
    figures = columns_table("Gains of recipes", [*gains, *named(findings, CHANCE), *changes.values()], ["recipe"])
    places = [_place(one, changes[_recipe(one)]) for one in gains if _recipe(one) in changes]
    main: list[Part] = [_chart(places, gains[0], figures)] if places else [figures]
    by_shift: dict[str, list[Measurement]] = {}
    for one in sorted(named(findings, BY_SHIFT), key=lambda one: -one.value):
        by_shift.setdefault(_recipe(one), []).append(one)
    details: list[Part] = [_shift_chart(recipe, own) for recipe, own in by_shift.items()]
    lead = (
        "Models trained by each recipe, with several seeds, beside those of the baseline, on the same images. Intervals are "
        "over images and seeds, and hold for all recipes together; shifts that took part in any training do not count."
    )
    return Section("recipes", "Recipes of training", lead, details, main, recipe_answers(page))


def recipe_answers(page: Page) -> list[str]:
    """Of each recipe whether it helps on unseen shifts, and what it costs on clean images; those that help come first."""
    gains = sorted(named(page.results.shown, GAIN), key=lambda one: -one.value)
    changes = {_recipe(one): one for one in named(page.results.shown, CHANGE)}
    return [kept_together(_answer(one, changes.get(_recipe(one)))) for one in gains]


def _answer(gain: Measurement, change: Measurement | None) -> str:
    """What can be said of one recipe.

    >>> from shiftproof.types import Interval
    >>> helps = Measurement("recipe_gain", 0.08, {"recipe": "augmix"}, 500, {}, Interval(0.05, 0.11))
    >>> costs = Measurement("recipe_clean_change", -0.004, {"recipe": "augmix"}, 500, {}, Interval(-0.02, 0.012))
    >>> _answer(helps, costs)
    'augmix helps on unseen shifts: +8.0 points (+5.0 to +11.0 points); on clean images −0.4 points (−2.0 to +1.2 points).'
    """
    told = f"{figure(gain.value, 'points')} ({span(gain.ends, 'points')})"
    if gain.ends is None:
        says = "gains on unseen shifts, with nothing known of the noise of training,"
    elif gain.ends[0] > 0:
        says = "helps on unseen shifts:"
    elif gain.ends[1] < 0:
        says = "does harm on unseen shifts:"
    else:
        says = "does not help or harm on unseen shifts as far as these images and seeds can tell:"
    cost = "" if change is None else f"; on clean images {figure(change.value, 'points')} ({span(change.ends, 'points')})"
    return f"{_recipe(gain)} {says} {told}{cost}."


def _shift_chart(recipe: str, found: Sequence[Measurement]) -> Chart:
    title = f"{recipe}, shift by shift"
    return dot_chart(
        title,
        found,
        measurement_table(title, found, value_title="Gain", keys=["shift"]),
        x_title="points of accuracy",
        labels=[str(one.about["shift"]).replace("_", " ") for one in found],
        note="Shifts that took part in its training are left out. Each CI is of this shift and recipe alone.",
    )


def _chart(places: Sequence[Place], gain: Measurement, figures: Table) -> Chart:
    described = "; ".join(f"{place.name}: {place.detail}" for place in places)
    spec = scatter_plot(
        places,
        x_title="change on clean images",
        y_title="gain on unseen shifts",
        description=f"Gain on unseen shifts against change on clean images: {described}.",
        what="recipe",
        unit="points",
    )
    note = (
        f"{gain.about['versus']} is at zero. Up is more robust, right is more accurate on clean images; bars are 95 % CIs."
    )
    return Chart("What a recipe gains, and what it costs", spec, figures, note)


def _place(gain: Measurement, change: Measurement) -> Place:
    detail = f"{figure(gain.value, 'points')} on unseen shifts, {figure(change.value, 'points')} on clean images"
    return Place(_recipe(gain), change.value, gain.value, detail, own=True, x_interval=change.ends, y_interval=gain.ends)


def _recipe(found: Measurement) -> str:
    return str(found.about["recipe"])


SECTION = SectionMaker(NAMES, draw_recipes, headlines=recipe_answers, key_numbers=(GAIN, CHANGE), partial=(BY_SHIFT,))
