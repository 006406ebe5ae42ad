"""A rotation head that is shown every image in four turns."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import shiftproof as sp
from shiftproof.cli.main import cli
from shiftproof.errors import BadInput
from shiftproof.models import load_model, perturbed_by_odin, random_network, with_rotations, wrap_model
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.ood.scores import rotation
from shiftproof.types import Inputs
from toys import COLOURS

torch = pytest.importorskip("torch", reason="torch is not installed")

NETWORK = """
import torch
from torch import nn

class Turning(nn.Module):
    def __init__(self, heads=4):
        super().__init__()
        torch.manual_seed(3)
        self.body = nn.Sequential(nn.Conv2d(3, 6, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(3), nn.Flatten())
        self.rotation, self.classes = nn.Linear(54, heads), nn.Linear(54, 3)

    def forward(self, images):
        points = self.body(images)
        return self.classes(points), self.rotation(points)

def five(): return Turning(5)
"""


def batch(images: int = 6) -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(images, 3, 12, 12)).astype(np.float32)


@pytest.fixture
def module() -> Any:
    names: dict[str, Any] = {}
    exec(NETWORK, names)
    return names["Turning"]().eval()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., LoadedClassifier]:
    (tmp_path / "networks.py").write_text(NETWORK)

    def load(factory: str = "Turning", **options: Any) -> LoadedClassifier:
        said = {
            "classes": sorted(COLOURS),
            "preprocess": "imagenet,size=12",
            "extra_output": "1",
            "rotated": True,
            **options,
        }
        model = load_model(f"torch:{tmp_path / 'networks.py'}:{factory}", **said)
        assert isinstance(model, LoadedClassifier)
        return model

    return load


def by_torch(module: Any, inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """The score of the paper with torch's own turns, divergences and losses, an image at a time."""
    scores = []
    for image in torch.from_numpy(inputs):
        with torch.no_grad():
            logits, _ = module(image[None])
            heads = [module(torch.rot90(image, turn, dims=(1, 2))[None])[1] for turn in range(4)]
        uniform = torch.full_like(logits, 1 / logits.shape[1])
        divergence = torch.nn.functional.kl_div(torch.log_softmax(logits, dim=1), uniform, reduction="sum")
        losses = [torch.nn.functional.cross_entropy(head, torch.tensor([turn])) for turn, head in enumerate(heads)]
        scores.append(-divergence.item() + sum(loss.item() for loss in losses) / 4)
    return np.array(scores)


def test_the_stored_numbers_give_the_score_that_torch_works_out(
    load: Callable[..., LoadedClassifier], module: Any, draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    model, images = load(), sp.open_dataset(draw_photos(7))
    found = sp.predict(model, images, store=tmp_path / "runs", keep="logits", batch_size=3)
    sources = [images.source(sample) for sample in images.samples]
    inputs = np.stack([model.preprocessing.from_image(source.decode(source.read())) for source in sources])
    ours = rotation(found)
    np.testing.assert_allclose(ours, by_torch(module, inputs.astype(np.float32)), atol=1e-5)
    assert np.ptp(ours) > 1e-3


def test_scores_and_features_are_those_of_the_upright_image(load: Callable[..., LoadedClassifier]) -> None:
    plain, rotated = load(rotated=False)(batch(), features=True), load()(batch(), features=True)
    assert np.array_equal(rotated.scores, plain.scores)
    assert rotated.features is not None
    assert np.array_equal(rotated.features, plain.features)  # type: ignore[arg-type]
    assert rotated.extra is not None
    assert rotated.extra.shape == (6, 16)
    assert np.array_equal(rotated.extra[:, :4], plain.extra)  # type: ignore[arg-type]


def test_a_turn_is_counterclockwise_and_of_the_picture_alone_in_either_layout() -> None:
    """The head says where the one bright corner is: top left, bottom left, bottom right, top right."""

    def corners(inputs: Inputs, *, channels: int) -> tuple[Any, Any, Any]:
        lit = np.asarray(inputs, np.float64).max(axis=channels)
        return lit.mean(axis=(1, 2))[:, None] * [1, 2], None, lit[:, [0, -1, -1, 0], [0, 0, -1, -1]]

    picture = np.zeros((8, 8, 3), np.uint8)
    picture[0, 0] = 255
    for layout, channels in (("nchw", 1), ("nhwc", 3)):
        preprocess = f"squash,mean=0,std=1,layout={layout}"
        model = wrap_model(
            partial(corners, channels=channels), name="corners", version="1", size=(8, 8), preprocess=preprocess
        )
        extra = with_rotations(model)(model.preprocessing.from_image(picture)[None]).extra
        assert extra is not None
        assert extra.reshape(4, 4).tolist() == np.eye(4).tolist()


def test_turning_is_part_of_the_fingerprint_and_said(load: Callable[..., LoadedClassifier]) -> None:
    plain, rotated = load(rotated=False), load()
    assert plain.ref.name == rotated.ref.name
    assert plain.ref.fingerprint != rotated.ref.fingerprint
    assert "four forward passes" in rotated.notes[-1]


def test_a_turned_model_can_be_redrawn_and_moved_for_odin(load: Callable[..., LoadedClassifier]) -> None:
    model = load()
    for other in (random_network(model, 1), perturbed_by_odin(model, eps=0.01)):
        extra = other(batch()).extra
        assert extra is not None
        assert extra.shape == (6, 16)
    plain = perturbed_by_odin(load(rotated=False), eps=0.01)
    assert np.array_equal(perturbed_by_odin(model, eps=0.01)(batch()).scores, plain(batch()).scores)


def test_what_cannot_be_turned_is_said(load: Callable[..., LoadedClassifier]) -> None:
    with pytest.raises(BadInput, match="say which output it is: --extra-output"):
        load(extra_output=None)
    with pytest.raises(BadInput, match="only square inputs can be rotated by 90 degrees, and Turning takes 12x16"):
        load(preprocess="imagenet,size=12x16")
    with pytest.raises(BadInput, match=r"a rotation head has four outputs an image, got shape \(6, 5\)"):
        load("five")(batch())
    with pytest.raises(BadInput, match="proposals:lite:0 takes no rotated"):
        load_model("proposals:lite:0", proposals="grid", extra_output="1", rotated=True)
    mute = wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="mute", version="1", size=(12, 12))
    with pytest.raises(BadInput, match="no extra output is named"):
        with_rotations(mute)(batch())


def test_a_rotation_head_that_runs_last_is_not_taken_for_the_head_of_the_classes(
    load: Callable[..., LoadedClassifier],
) -> None:
    model = load()
    scores, features, _ = model(batch(), features=True)
    assert model.head is not None
    assert features is not None
    np.testing.assert_allclose(features @ model.head.weights.T + model.head.bias, scores, atol=1e-5)


def test_the_command_line_measures_both_scores_of_a_rotation_head(
    load: Callable[..., LoadedClassifier], draw_photos: Callable[..., Path], tmp_path: Path
) -> None:
    load()  # writes the network's file
    (tmp_path / "classes.txt").write_text("\n".join(sorted(COLOURS)))
    spec, photos, others = f"torch:{tmp_path / 'networks.py'}:Turning", draw_photos(3), draw_photos(2, "others")
    options = ["--preprocess", "imagenet,size=12", "--classes", str(tmp_path / "classes.txt"), "--quiet", "--json"]
    asked = ["--ood", str(others), "--ood-detectors", "rotation,rotation_upright", "--ood-baseline", "rotation"]
    store = ["--store", str(tmp_path / "runs"), "-o", str(tmp_path / "report.html")]
    turning = ["--extra-output", "1", "--rotated", "--studies", "ood"]
    done = CliRunner().invoke(cli, ["run", spec, str(photos), *options, *asked, *store, *turning])
    assert done.exit_code == 0, done.output
    assert '"rotation_upright"' in done.output
    assert '"direction counterclockwise"' in done.output
