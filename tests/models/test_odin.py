"""ODIN's perturbed inputs: what a torch model says of images moved towards the class it takes them for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models import load_model, perturbed_by_odin, wrap_model
from shiftproof.models.companions import Perturbed
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.types import Inputs, Outputs

torch = pytest.importorskip("torch", reason="torch is not installed")

NETWORK = """
import torch
from torch import nn

def smooth():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Tanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Dropout(), nn.Linear(32, 5))

class Deaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = smooth()

    def forward(self, images):
        return self.body(images.detach())
"""


def batch(images: int = 4) -> NDArray[np.float32]:
    return np.random.default_rng(1).normal(size=(images, 3, 16, 16)).astype(np.float32)


@pytest.fixture
def module() -> Any:
    names: dict[str, Any] = {}
    exec(NETWORK, names)
    return names["smooth"]().eval()


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., LoadedClassifier]:
    (tmp_path / "networks.py").write_text(NETWORK)

    def load(factory: str = "smooth", **options: Any) -> LoadedClassifier:
        spec = f"torch:{tmp_path / 'networks.py'}:{factory}"
        model = load_model(spec, **{"classes": list("abcde"), "preprocess": "imagenet,size=16", **options})
        assert isinstance(model, LoadedClassifier)
        return model

    return load


def by_hand(module: Any, inputs: NDArray[np.float32], eps: float, temperature: float, std: Any) -> NDArray[np.float32]:
    """ODIN written out with torch's autograd, an image at a time."""
    answers = []
    for image in inputs:
        point = torch.tensor(image[None], requires_grad=True)
        logits = module(point)
        loss = -torch.log_softmax(logits / temperature, dim=1)[0, logits[0].argmax()]
        loss.backward()
        step = eps * point.grad.sign() / torch.tensor(std, dtype=torch.float32).reshape(1, -1, 1, 1)
        with torch.no_grad():
            answers.append(module(point - step).numpy())
    return np.concatenate(answers)


IMAGENET_STD = (0.229, 0.224, 0.225)


@pytest.mark.parametrize(("divide_by_std", "std"), [(True, IMAGENET_STD), (False, (1.0, 1.0, 1.0))])
@pytest.mark.parametrize(("eps", "temperature"), [(0.0014, 1000.0), (0.05, 1.0)])
def test_it_is_odin_written_out_image_by_image(
    load: Callable[..., LoadedClassifier], module: Any, eps: float, temperature: float, divide_by_std: bool, std: Any
) -> None:
    model = perturbed_by_odin(load(), eps=eps, temperature=temperature, divide_by_std=divide_by_std)
    ours = model(batch()).scores
    assert np.allclose(ours, by_hand(module, batch(), eps, temperature, std), atol=1e-5)
    assert np.abs(ours - load()(batch()).scores).max() > 1e-3


def test_an_eps_of_zero_leaves_the_answers_as_they_are(load: Callable[..., LoadedClassifier]) -> None:
    assert np.array_equal(perturbed_by_odin(load(), eps=0.0)(batch()).scores, load()(batch()).scores)


@pytest.mark.parametrize("temperature", [1.0, 1000.0])
def test_the_best_class_becomes_likelier_by_eps_times_the_size_of_the_gradient(
    load: Callable[..., LoadedClassifier], temperature: float
) -> None:
    model, eps = load(), 1e-3
    gradient = model.forward.gradient(batch(), temperature)  # type: ignore[attr-defined]
    moved = perturbed_by_odin(model, eps=eps, temperature=temperature, divide_by_std=False)(batch()).scores

    def losses(logits: NDArray[np.floating]) -> NDArray[np.float64]:
        scaled = logits.astype(np.float64) / temperature
        return np.asarray(np.log(np.exp(scaled).sum(axis=1)) - scaled[np.arange(4), plain.argmax(axis=1)])

    plain = model(batch()).scores
    fall = losses(plain) - losses(moved)
    assert (fall > 0).all()
    assert np.allclose(fall, eps * np.abs(gradient).sum(axis=(1, 2, 3)), rtol=0.05)


def test_an_answer_does_not_depend_on_its_batch(load: Callable[..., LoadedClassifier]) -> None:
    model = perturbed_by_odin(load(), eps=0.05)
    alone = np.concatenate([model(batch()[place : place + 1]).scores for place in range(4)])
    assert np.allclose(model(batch()).scores, alone, atol=1e-5)


def test_features_are_those_of_the_moved_inputs(load: Callable[..., LoadedClassifier]) -> None:
    model = perturbed_by_odin(load(), eps=0.05)
    scores, features, _ = model(batch(), features=True)
    plain = load()(batch(), features=True).features
    assert features is not None
    assert plain is not None
    assert model.head is not None
    assert np.allclose(features @ model.head.weights.T + model.head.bias, scores, atol=1e-5)
    assert np.abs(features - plain).max() > 1e-3


def test_the_module_keeps_its_mode_and_collects_no_gradients(load: Callable[..., LoadedClassifier]) -> None:
    model = load()
    before = model(batch()).scores
    perturbed_by_odin(model, eps=0.05)(batch())
    network: Any = model.forward
    assert not any(layer.training for layer in network.module.modules())
    assert all(parameter.grad is None for parameter in network.module.parameters())
    assert np.array_equal(model(batch()).scores, before)


def test_the_gradient_is_taken_in_full_precision(load: Callable[..., LoadedClassifier]) -> None:
    mixed, plain = (load(precision=precision).forward for precision in ("bfloat16", "float32"))
    assert np.array_equal(mixed.gradient(batch(), 1.0), plain.gradient(batch(), 1.0))  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_exported_programs_and_traced_modules_give_gradients_too(module: Any, tmp_path: Path) -> None:
    torch.export.save(torch.export.export(module, (torch.zeros(2, 3, 16, 16),)), tmp_path / "a.pt2")
    torch.jit.save(torch.jit.trace(module, torch.zeros(1, 3, 16, 16)), tmp_path / "a.pt")
    expected = by_hand(module, batch(3), 0.05, 1000.0, IMAGENET_STD)
    for file in ("a.pt2", "a.pt"):  # the program takes batches of two
        model = load_model(f"torch:{tmp_path / file}", classes=list("abcde"), preprocess="imagenet,size=16", trust=True)
        assert np.allclose(perturbed_by_odin(model, eps=0.05)(batch(3)).scores, expected, atol=1e-5)


def test_eps_is_a_share_of_the_way_from_black_to_white_whatever_range_the_model_takes(
    load: Callable[..., LoadedClassifier],
) -> None:
    seen: list[Inputs] = []

    class Network:
        def __call__(self, inputs: Inputs, features: bool) -> Outputs:
            seen.append(inputs)
            return Outputs(np.zeros((len(inputs), 5)))

        def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.floating]:
            return np.where(np.arange(3)[:, None, None] == 1, -1.0, 1.0) * np.ones(inputs.shape)

    ranges = {"0..1": (0.25, 0.5, 1.0), "0..255": (255 * 0.25, 255 * 0.5, 255.0), "-1..1": (0.5, 1.0, 2.0)}
    for value_range, std in ranges.items():
        figures = f"range={value_range},mean=0,std={'/'.join(map(str, std))}"
        preprocessing: Any = load(preprocess=f"imagenet,size=16,{figures}").preprocessing
        Perturbed(Network(), np.float32(0.01) * preprocessing.contrast, 1.0)(np.zeros((2, 3, 4, 4), np.float32), False)
        assert np.allclose(seen[-1][:, :, 0, 0], [-0.04, 0.02, -0.01])


def test_it_is_a_model_of_its_own_that_says_what_was_done(load: Callable[..., LoadedClassifier]) -> None:
    model = load()
    prints = {
        model.ref.fingerprint,
        *(
            perturbed_by_odin(model, **chosen).ref.fingerprint
            for chosen in ({}, {"eps": 0.005}, {"temperature": 1.0}, {"divide_by_std": False})
        ),
    }
    assert len(prints) == 5
    odin = perturbed_by_odin(model)
    assert odin.ref.name == "smooth odin 0.0014"
    assert "eps 0.0014" in odin.notes[-1]
    assert "divided by std" in odin.notes[-1]
    assert "temperature 1000" in odin.notes[-1]
    assert (odin.preprocessing, odin.classes, odin.gives) == (model.preprocessing, model.classes, model.gives)


def test_what_gives_no_gradient_says_why(
    load: Callable[..., LoadedClassifier], make_onnx: Callable[..., Path], tmp_path: Path
) -> None:
    graph = load_model(f"onnx:{make_onnx()}", preprocess="imagenet", classes=list("abcde"))
    with pytest.raises(BadInput, match="eps > 0 needs a torch model"):
        perturbed_by_odin(graph)
    assert perturbed_by_odin(graph, eps=0.0).ref.name == "small odin 0"
    with pytest.raises(BadInput, match="eps > 0 needs a torch model"):
        perturbed_by_odin(wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="mean", version="1"))
    with pytest.raises(BadInput, match="needs logits, and smooth gives scores"):
        perturbed_by_odin(load(gives="scores"))
    with pytest.raises(BadInput, match="an eps of 0 or more"):
        perturbed_by_odin(load(), eps=-0.1)
    with pytest.raises(BadInput, match="gives no gradient by its input: element 0"):
        perturbed_by_odin(load("Deaf"))(batch())
