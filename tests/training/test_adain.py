"""Style transfer with the user's weights: moments by hand, networks by their shapes, and files that are something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.training.recipe import chosen_recipes

torch = pytest.importorskip("torch", reason="torch is not installed")

from shiftproof.training.networks.adain import DECODER, ENCODER, adain, network_of, opened, transferred  # noqa: E402


def save_weights(path: Path, plan: Any, *, first: bool = False) -> Path:
    """Random convolutions in the order of a network, numbered as in a sequence of layers."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(3, 3, 1, 1)] * first + [(step[1], step[0], 3, 3) for step in plan if isinstance(step, tuple)]
    tensors = {}
    for number, shape in enumerate(shapes):
        spread = (2 / (shape[1] * shape[2] * shape[3])) ** 0.5
        tensors[f"{3 * number}.weight"] = torch.randn(shape, generator=generator) * spread
        tensors[f"{3 * number}.bias"] = torch.randn(shape[0], generator=generator) * 0.1
    torch.save(tensors, path)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("weights")
    return save_weights(folder / "encoder.pth", ENCODER, first=True), save_weights(folder / "decoder.pth", DECODER)


def test_moments_are_those_worked_by_hand() -> None:
    content = torch.tensor([[[[1.0, 3.0]], [[0.0, 0.0]]]])
    style = torch.tensor([[[[10.0, 20.0, 30.0]], [[5.0, 5.0, 8.0]]]])
    found = adain(content, style)
    # mean 2 and standard deviation sqrt(2) become mean 20 and standard deviation 10
    assert torch.allclose(found[0, 0, 0], torch.tensor([20 - 10 / 2**0.5, 20 + 10 / 2**0.5]), atol=1e-3)
    assert torch.allclose(found[0, 1, 0], torch.tensor([6.0, 6.0])), "what has no variance has the other's mean"


def test_the_style_of_itself_changes_nothing() -> None:
    features = torch.randn(1, 8, 5, 7, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(adain(features, features), features, atol=1e-6)


def test_networks_have_the_published_shapes(files: tuple[Path, Path]) -> None:
    encode, decode = opened(*map(str, files))
    with torch.inference_mode():
        features = encode(torch.rand(1, 3, 32, 48))
        assert features.shape == (1, 512, 4, 6), "three halvings before relu4_1"
        assert features.min() >= 0
        assert decode(features).shape == (1, 3, 32, 48)
        assert encode(torch.rand(1, 3, 30, 45)).shape == (1, 512, 4, 6), "odd sides are rounded up"
    convolutions = [layer for layer in encode if isinstance(layer, torch.nn.Conv2d)]
    assert [layer.out_channels for layer in convolutions] == [3, 64, 64, 128, 128, 256, 256, 256, 256, 512]
    # VGG-19 with biases up to conv4_1, and the 1 x 1 before it
    assert sum(parameter.numel() for parameter in encode.parameters()) == 3_505_728 + 12


def test_a_picture_keeps_its_size_and_style_counts(files: tuple[Path, Path]) -> None:
    rng = np.random.default_rng(0)
    image, one, other = (rng.integers(0, 256, shape, np.uint8) for shape in ((30, 45, 3), (24, 24, 3), (40, 32, 3)))
    where = tuple(map(str, files))
    full = [transferred(image, style, 1.0, *where) for style in (one, other)]
    none = [transferred(image, style, 0.0, *where) for style in (one, other)]
    assert full[0].shape == image.shape
    assert full[0].dtype == np.uint8
    assert not np.array_equal(full[0], full[1])
    assert np.array_equal(none[0], none[1])
    assert np.abs(transferred(image, image, 1.0, *where).astype(int) - none[0]).max() <= 1


def test_the_recipe_names_weights_by_their_digests(files: tuple[Path, Path], tmp_path: Path) -> None:
    text = f"stylized?share=1,encoder={files[0]},decoder={files[1]}"
    (chosen,) = chosen_recipes(text)
    assert str(chosen.settings["encoder"]).startswith(f"{files[0]}@")
    assert chosen.augmentations == ("style transfer",)
    assert chosen_recipes(str(chosen))[0].settings == chosen.settings
    picture = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    assert chosen.recipe.augment is not None
    styled = chosen.recipe.augment(picture, np.random.default_rng(0), [picture[::-1].copy()], **chosen.settings)
    assert np.array_equal(styled, transferred(picture, picture[::-1].copy(), 1.0, *map(str, files)))
    other = save_weights(tmp_path / "other.pth", DECODER)
    known = str(chosen_recipes(f"stylized?encoder={files[0]},decoder={other}")[0])
    save_weights(other, DECODER, first=True)
    with pytest.raises(BadInput, match="holds other weights than when it was named"):
        chosen_recipes(known)


def test_files_that_are_no_such_networks_are_told(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="needs the weights of both"):
        chosen_recipes(f"stylized?encoder={files[0]}")
    with pytest.raises(BadInput, match=r"from 512 to 256 channels should come next, got 3 to 3, 1 x 1"):
        network_of(DECODER, files[0])
    with pytest.raises(BadInput, match="from 3 to 64 channels should come next, got 512 to 256"):
        network_of(ENCODER, files[1])
    torch.save({"0.weight": torch.zeros(64, 3, 3, 3)}, tmp_path / "short.pth")
    with pytest.raises(BadInput, match="from 64 to 64 channels should come next, got none"):
        network_of(ENCODER, tmp_path / "short.pth")
    with pytest.raises(BadInput):
        chosen_recipes(f"stylized?encoder={tmp_path / 'none.pth'},decoder={files[1]}")
