"""What every recipe of the catalog promises."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof import catalog
from shiftproof.errors import BadInput, MissingExtra
from shiftproof.training.recipe import Recipe, chosen_recipes, recipe_of, torch_part

RNG = np.random.default_rng(0)
PICTURES = [RNG.integers(0, 256, shape, np.uint8) for shape in ((32, 32, 3), (47, 80, 3))]


@pytest.mark.parametrize("name", catalog.RECIPES)
def test_a_recipe_says_what_it_is(name: str) -> None:
    recipe = recipe_of(name)
    assert isinstance(recipe, Recipe)
    assert recipe.title
    assert recipe.description.endswith(".")
    assert set(recipe.levels) <= {"head", "network"} if recipe.adapt is None else recipe.levels == ("test time",)
    assert recipe.levels
    assert recipe.parts or name in ("linear-probe",), "a recipe that changes nothing is none"


@pytest.mark.parametrize("name", catalog.RECIPES)
def test_a_recipe_is_read_again_as_it_is_written(name: str) -> None:
    (chosen,) = chosen_recipes(name)
    (again,) = chosen_recipes(str(chosen))
    assert (again.name, again.settings) == (chosen.name, chosen.settings)
    if chosen.settings:
        (_, first), *_ = chosen.settings.items()
        (said,) = chosen_recipes(f"{name}:{first}")
        assert said.settings == chosen.settings


NUMBERS = [
    (name, key) for name in catalog.RECIPES for key, value in recipe_of(name).settings.items() if isinstance(value, float)
]
COSTLY = {
    "adversarial": ("replays",),
    "augmix": ("width", "depth"),
    "cutout": ("holes",),
    "memo": ("views", "steps"),
    "pixmix": ("rounds", "fractals"),
    "randaugment": ("operations",),
    "tent": ("epochs",),
}
"""Settings that time or memory grow with, for every picture."""


@pytest.mark.parametrize(("name", "setting"), NUMBERS)
def test_a_setting_that_is_no_number_is_refused_before_anything_is_trained(name: str, setting: str) -> None:
    for wrong in ("nan", "-inf"):
        with pytest.raises(BadInput, match=wrong):
            chosen_recipes(f"{name}?{setting}={wrong}")


@pytest.mark.parametrize(("name", "setting"), [(name, key) for name, keys in COSTLY.items() for key in keys])
def test_a_setting_that_would_take_for_ever_is_refused(name: str, setting: str) -> None:
    with pytest.raises(BadInput, match=f"{name}: {setting} should be [01] to [0-9]+, got 1000000000"):
        chosen_recipes(f"{name}?{setting}=1000000000")


@pytest.mark.parametrize("name", [name for name in catalog.RECIPES if recipe_of(name).augment or recipe_of(name).crop])
@pytest.mark.parametrize("picture", PICTURES, ids=["square", "wide"])
def test_an_augmentation_keeps_shape_repeats_and_leaves_its_input_alone(name: str, picture: np.ndarray) -> None:
    (chosen,) = chosen_recipes(name)
    change, before = chosen.recipe.augment or chosen.recipe.crop, picture.copy()
    assert change is not None
    others = [picture[::-1], picture[:, ::-1], np.full_like(picture, 90)] if chosen.recipe.mixes else []
    drawn = [change(picture, np.random.default_rng(seed), others, **chosen.settings) for seed in (0, 0, *range(1, 12))]
    assert all(one.shape == picture.shape and one.dtype == np.uint8 for one in drawn)
    assert np.array_equal(drawn[0], drawn[1])
    assert any(not np.array_equal(drawn[0], one) for one in drawn[2:]), "another seed gives another picture"
    assert np.array_equal(picture, before)


def places_of(name: str) -> list[str]:
    """Where a recipe says that functions are."""
    return list(filter(None, (recipe_of(name).loss, recipe_of(name).extend, recipe_of(name).adapt)))


@pytest.mark.parametrize("name", [name for name in catalog.RECIPES if places_of(name)])
def test_functions_of_torch_are_where_a_recipe_says(name: str) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    for place in places_of(name):
        try:
            assert callable(torch_part(place))
        except MissingExtra as missing:
            pytest.skip(str(missing))


@pytest.mark.parametrize("name", catalog.RECIPES)
def test_what_a_recipe_cites_is_what_cite_gives_for_it(name: str) -> None:
    own = {work.key for work in sp.cite([name]) if f"recipes/{name}" in work.behind}
    assert own == set(recipe_of(name).cites)


def row(name: str) -> str:
    """The recipe's row in the docs."""
    recipe = recipe_of(name)
    settings = ", ".join(
        f"`{key}` {value:.3g}" if isinstance(value, float) else f"`{key}` {value}".strip()
        for key, value in recipe.settings.items()
    )
    return f"| `{name}` | {recipe.description} | {', '.join(recipe.levels)} | {settings} |"


@pytest.mark.parametrize("name", catalog.RECIPES.built_in)
def test_a_recipe_has_a_row_in_the_docs(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    assert row(name) in page.splitlines(), f"docs/training.md should have the row: {row(name)}"
