import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from shiftproof.errors import BadInput, ShiftproofError
from shiftproof.models import load_model
from shiftproof.models.classifiers.lite import SIZES, blocks_of, checkpoint_of
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.types import Inputs


def noise(images: int, size: int) -> Inputs:
    return np.random.default_rng(0).normal(0, 0.6, (images, 3, size, size)).astype(np.float32)


def torch_answer(number: int, inputs: Inputs) -> tuple[Any, Any, set[str]]:
    """Logits, features and the names of tensors not used, by torch's own operations and reading of the file."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    functional = torch.nn.functional
    state: Mapping[str, Any] = torch.load(checkpoint_of(number), weights_only=True)
    used: set[str] = set()

    def take(name: str) -> Any:
        used.add(name)
        return state[name]

    def layer(values: Any, weights: str, norm: str, *, stride: int = 1, groups: int = 1, clipped: bool = True) -> Any:
        kernel = take(weights)
        # TensorFlow's SAME: as many outputs as strides fit, the odd pixel of padding goes below and right
        total = [max((-(-side // stride) - 1) * stride + kernel.shape[-1] - side, 0) for side in values.shape[2:]]
        pads = (total[1] // 2, total[1] - total[1] // 2, total[0] // 2, total[0] - total[0] // 2)
        values = functional.conv2d(functional.pad(values, pads), kernel, stride=stride, groups=groups)
        statistics = [take(f"{norm}.{part}") for part in ("running_mean", "running_var", "weight", "bias")]
        values = functional.batch_norm(values, *statistics, training=False, eps=1e-3)
        return values.clamp(0, 6) if clipped else values

    with torch.inference_mode():
        values = layer(torch.from_numpy(inputs), "_conv_stem.weight", "_bn0", stride=2)
        for place, block in enumerate(blocks_of(number)):
            name, source = f"_blocks.{place}", values
            if block.expansion != 1:
                values = layer(values, f"{name}._expand_conv.weight", f"{name}._bn0")
            depthwise = f"{name}._depthwise_conv.weight"
            values = layer(values, depthwise, f"{name}._bn1", stride=block.stride, groups=values.shape[1])
            values = layer(values, f"{name}._project_conv.weight", f"{name}._bn2", clipped=False)
            if values.shape == source.shape:
                values = values + source
        features = layer(values, "_conv_head.weight", "_bn1").mean(dim=(2, 3))
        logits = functional.linear(features, take("_fc.weight"), take("_fc.bias"))
    unused = {name for name in state if not name.endswith("num_batches_tracked")} - used
    return logits.numpy(), features.numpy(), unused


@pytest.mark.parametrize("number", SIZES)
def test_the_graph_gives_torchs_answer_and_uses_every_tensor(number: int) -> None:
    inputs = noise(2, SIZES[number])
    ours = load_model(f"lite:{number}")(inputs, features=True)
    logits, features, unused = torch_answer(number, inputs)
    assert not unused
    assert ours.features is not None
    assert np.abs(ours.scores - logits).max() < 1e-4
    assert np.abs(ours.features - features).max() < 1e-4


def test_the_head_turns_features_into_logits() -> None:
    model = load_model("lite:0")
    scores, features, _ = model(noise(2, 224), features=True)
    assert model.head is not None
    assert features is not None
    assert np.abs(features @ model.head.weights.T + model.head.bias - scores).max() < 1e-4


def test_the_network_is_made_once_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path))
    load_model("lite:0")(noise(1, 224))
    (kept,) = tmp_path.glob("models/lite0-*.onnx")
    before = kept.stat().st_mtime_ns
    load_model("lite:0")(noise(1, 224))
    assert kept.stat().st_mtime_ns == before


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where the folder should be")
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path / "file" / "cache"))
    assert load_model("lite:0")(noise(1, 224)).scores.shape == (1, 1000)


@pytest.mark.parametrize("left", [0, 1000])
def test_a_damaged_cache_is_told_at_another_size_too(left: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path))
    model = load_model("lite:0")
    model(noise(1, 224))
    (kept,) = tmp_path.glob("models/lite0-*.onnx")
    kept.write_bytes(kept.read_bytes()[:left])
    assert isinstance(model, LoadedClassifier)
    assert model.for_size is not None
    smaller = model.for_size((160, 160))
    with pytest.raises(BadInput, match=f"{kept.name} is damaged; remove it"):
        smaller(noise(1, 160), False)
    kept.unlink()
    assert smaller(noise(1, 160), False).scores.shape == (1, 1000)


def test_looking_at_the_model_makes_no_session_and_reads_no_graph() -> None:
    looked_at = (
        "import sys; from shiftproof.models import load_model; m = load_model('lite:0'); "
        "m.ref, m.classes, m.preprocessing.describe(), m.gives, m.notes; "
        "assert 'session' not in vars(m.forward); print('onnx' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", looked_at], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_it_says_what_it_was_trained_on_and_the_user_may_say_more() -> None:
    assert "ILSVRC-2012" in load_model("lite:0").seen.training_data
    assert load_model("lite:0", seen="ILSVRC-2012 and fog").seen.training_data == "ILSVRC-2012 and fog"


def test_the_fingerprint_follows_the_weights_and_the_preprocessing() -> None:
    plain = load_model("lite:0").ref.fingerprint
    assert load_model("lite:0", name="other").ref.fingerprint == plain
    assert load_model("lite:0", preprocess="imagenet").ref.fingerprint != plain
    assert load_model("lite:1").ref.fingerprint != plain


def test_another_number_or_size_is_refused() -> None:
    with pytest.raises(ShiftproofError, match="there are: 0, 1, 2"):
        load_model("lite:7")
    with pytest.raises(BadInput, match="224x224 only"):
        load_model("lite:0", preprocess="lite,size=240")


def test_a_model_stays_in_its_process() -> None:
    with pytest.raises(TypeError, match="send its preprocessing"):
        pickle.dumps(load_model("lite:0"))
