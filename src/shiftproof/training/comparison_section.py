"""Does a recipe help, on what, and at what cost on clean images: its part of the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.errors import listed
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
KEYS = frozenset({"recipe", "versus"})

ALONE = "nothing else"
"""The recipe that has what all of them have, and no more."""


def draw_recipes(findings: Sequence[Finding], page: Page) -> Section:  # noqa: ARG001 - every section gets it
    """The gain of each recipe against its cost, then shift by shift."""
    findings, common = in_short(findings)
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
    told = [f"All recipes have {common}, and are named by what else they have."] if common else []
    return Section("recipes", "Recipes of training", lead, details, main, [*told, *recipe_answers(findings)])


def in_short(findings: Sequence[Finding]) -> tuple[list[Finding], str]:
    """Findings whose recipes are named by what they do not share, and what all of them have in common."""
    about = [one.about for one in findings if "recipe" in one.about]
    names = dict.fromkeys(str(one[key]) for one in about for key in ("versus", "recipe") if key in one)
    common, short = short_names(list(names))
    kept = [
        dataclasses.replace(one, about={**one.about, **{key: short[str(one.about[key])] for key in KEYS & one.about.keys()}})
        if isinstance(one, Measurement) and "recipe" in one.about
        else one
        for one in findings
    ]
    return kept, common


def short_names(recipes: Sequence[str]) -> tuple[str, dict[str, str]]:
    """What recipes have in common, and the rest of each by its name.

    >>> short_names(["lp-ft", "augmix+lp-ft", "cutout+lp-ft"])
    ('lp-ft', {'lp-ft': 'nothing else', 'augmix+lp-ft': 'augmix', 'cutout+lp-ft': 'cutout'})
    """
    parts = {name: name.split("+") for name in recipes}
    shared = [part for part in next(iter(parts.values()), []) if all(part in own for own in parts.values())]
    rest = {name: "+".join(part for part in own if part not in shared) for name, own in parts.items()}
    if not shared or len(set(rest.values())) < len(rest):
        return "", {name: name for name in recipes}
    return "+".join(shared), {name: left or ALONE for name, left in rest.items()}


def recipe_answers(findings: Sequence[Finding]) -> list[str]:
    """Of each recipe whether it helps on unseen shifts, and what it costs on clean images; those that help come first."""
    gains = sorted(named(findings, GAIN), key=lambda one: -one.value)
    changes = {_recipe(one): one for one in named(findings, CHANGE)}
    return [kept_together(_answer(one, changes.get(_recipe(one)))) for one in gains]


def recipe_headline(page: Page) -> list[str]:
    """Who helps and who harms, in one sentence; the section has the numbers."""
    findings, _ = in_short(page.results.shown)
    gains = sorted(named(findings, GAIN), key=lambda one: -one.value)
    if not gains:
        return []
    known = [one for one in gains if one.ends is not None]
    if not known:
        return ["With one seed nothing is known of the noise of training, so no recipe can be said to help or to do harm."]
    helps = [_recipe(one) for one in known if one.ends and one.ends[0] > 0]
    harms = [_recipe(one) for one in known if one.ends and one.ends[1] < 0]
    unsure = [_recipe(one) for one in gains if _recipe(one) not in {*helps, *harms}]
    told = {
        f"{listed(helps)} {'helps' if len(helps) == 1 else 'help'}": helps,
        f"{listed(harms)} {'does' if len(harms) == 1 else 'do'} harm": harms,
        f"no effect of {listed(unsure)} is sure, by these images and seeds": unsure,
    }
    return [f"On unseen shifts {'; '.join(clause for clause, recipes in told.items() if recipes)}."]


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
    note = f"{_baseline(gain)} is at zero. Up is more robust, right is more accurate on clean images; bars are 95 % CIs."
    return Chart("What a recipe gains, and what it costs", spec, figures, note)


def _place(gain: Measurement, change: Measurement) -> Place:
    detail = f"{figure(gain.value, 'points')} on unseen shifts, {figure(change.value, 'points')} on clean images"
    return Place(_recipe(gain), change.value, gain.value, detail, own=True, x_interval=change.ends, y_interval=gain.ends)


def _baseline(found: Measurement) -> str:
    versus = str(found.about["versus"])
    return "What all have, and nothing else," if versus == ALONE else versus


def _recipe(found: Measurement) -> str:
    return str(found.about["recipe"])


SECTION = SectionMaker(NAMES, draw_recipes, headlines=recipe_headline, key_numbers=(GAIN, CHANGE), partial=(BY_SHIFT,))
