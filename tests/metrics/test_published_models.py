"""Published models: what the tables hold, and where a value stands among them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import percentileofscore

from shiftproof.catalog import METRICS
from shiftproof.metrics.published import FAMILIES, SHIFTS, TABLES, among, published_models
from shiftproof.reference import load_table, source_of


@pytest.mark.parametrize(("dataset", "metric"), [(name, metric) for name in TABLES for metric in TABLES[name][0].columns])
def test_every_table_holds_shares_of_known_metrics(dataset: str, metric: str) -> None:
    values = [model.value for model in published_models(metric, dataset)]
    assert metric in METRICS
    assert len(values) >= 5
    assert 0 < min(values) < max(values) < 2  # mCE may pass that of AlexNet, which is 1


@pytest.mark.parametrize("dataset", SHIFTS)
def test_a_value_stands_where_scipy_ranks_it(dataset: str) -> None:
    values = [model.value for model in published_models("top1_accuracy", dataset)]
    for value in (values[0], values[-1], float(np.median(values)), 0.0, 1.0):
        standing = among("top1_accuracy", dataset, value)
        assert standing is not None
        assert standing.below == pytest.approx(percentileofscore(values, value, kind="mean") / 100)
        assert standing.better_than == standing.below
        assert standing.values == tuple(sorted(values))


def test_of_an_error_the_lower_is_the_better() -> None:
    standing = among("mean_corruption_error", "imagenet-c", 0.536)  # the best of the table
    assert standing is not None
    assert (standing.below, standing.better_than) == pytest.approx((0.5 / 15, 14.5 / 15))


def test_what_nobody_published_has_no_standing() -> None:
    assert among("top1_accuracy", "my photos", 0.5) is None
    assert among("aurra", "imagenet", 0.5) is None
    assert among("top1_accuracy", "imagenet", 0.5, family="no such family") is None


def test_families_are_a_part_of_all_and_each_model_has_one() -> None:
    models = published_models("top1_accuracy", "imagenet-r")
    families = {model.family for model in models}
    assert len(models) == 1555 + 121
    assert families == {*FAMILIES}
    sizes = [
        len(standing.values) for family in families if (standing := among("top1_accuracy", "imagenet-r", 0.5, family=family))
    ]
    assert sum(sizes) == len(models)


@pytest.mark.parametrize(
    ("model", "family", "v2"),
    [  # as Recht et al. (2019) measured the first on ImageNetV2
        ("resnet152.tv_in1k", "ImageNet-1k", 67.0),
        ("deit_base_distilled_patch16_224.fb_in1k", "ImageNet-1k (distilled)", None),
        ("vit_base_patch16_224.augreg_in21k_ft_in1k", "ImageNet-21k", None),
        ("resnext101_32x8d.fb_swsl_ig1b_ft_in1k", "web images", None),
        ("vit_large_patch14_clip_224.openai_ft_in1k", "image-text (fine-tuned)", None),
        ("ViT-B-32 (openai)", "image-text (zero-shot)", None),
    ],
)
def test_a_family_is_what_the_model_was_trained_on(model: str, family: str, v2: float | None) -> None:
    (found, *_) = [one for one in published_models("top1_accuracy", "imagenet-v2") if one.name == model]
    assert found.family == family
    if v2 is not None:
        assert 100 * found.value == pytest.approx(v2, abs=0.5)


@pytest.mark.parametrize(
    ("table", "licence"), [("timm_imagenet_shifts", "Apache-2.0"), ("open_clip_zero_shot_shifts", "MIT")]
)
def test_the_source_names_the_licence(table: str, licence: str) -> None:
    assert licence in source_of(table)
    assert {"model", "family", "imagenet"} <= load_table(table)[0].keys()
