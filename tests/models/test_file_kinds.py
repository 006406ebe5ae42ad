"""Files of every kind that a user may hand over: opened, or the way to a model in one sentence."""

import json
from pathlib import Path

import pytest

from command import Shiftproof
from shiftproof.errors import BadInput
from shiftproof.models import load_detector, load_model
from shiftproof.models.file_kinds import recognised
from toys import small_transformer


@pytest.mark.parametrize("prefix", ["", "torch:", "onnx:", "keras:", "joblib:"])
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("a.joblib", "is a pickle, which can run any code as soon as it is opened, and is never loaded here.*sp.wrap_model"),
        ("a.pkl", "never loaded here"),
        ("a.keras", r"not opened here.*load_model\('a.keras', safe_mode=True\).*export\('a.onnx', format='onnx'\)"),
        ("nets/a.H5", r"load_model\('nets/a.H5', safe_mode=True\).*export\('a.onnx'"),
        ("a.pb", "frozen graph of TensorFlow.*tf2onnx.convert --graphdef a.pb .*--output a.onnx"),
        ("saved/saved_model.pb", "SavedModel of TensorFlow.*tf2onnx.convert --saved-model saved --output saved.onnx"),
        ("a.engine", "compiled for one runtime"),
    ],
)
def test_a_file_that_is_not_opened_says_the_way(prefix: str, name: str, answer: str) -> None:
    for load in (load_model, load_detector):
        with pytest.raises(BadInput, match=answer):
            load(prefix + name)


def test_a_name_that_a_shell_would_read_otherwise_is_no_part_of_a_command() -> None:
    with pytest.raises(BadInput) as told:
        load_model("a'); print('ran.keras")
    assert "load_model('FILE', safe_mode=True)" in str(told.value)


@pytest.mark.parametrize("ending", [".pt", ".pth", ".bin", ".ckpt", ".safetensors"])
def test_weights_alone_say_what_else_is_needed(ending: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from safetensors.torch import save_file

    state, path = {"layer.weight": torch.ones(2, 3), "layer.bias": torch.ones(2)}, tmp_path / f"weights{ending}"
    save_file(state, path) if ending == ".safetensors" else torch.save({"state_dict": state}, path)
    for spec in (str(path), f"torch:{path}"):
        with pytest.raises(BadInput) as told:
            load_model(spec)
        assert "holds weights (2 tensors, layer." in str(told.value)
        assert "torch:FILE.py:FACTORY" in str(told.value)
        assert str(told.value).endswith(f"timm:NAME or torchvision:NAME, with --weights {path}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_folder_of_transformers_is_opened_and_said(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    folder = small_transformer(tmp_path)
    model = load_model(str(folder))
    assert model.notes[0] == f"a folder of transformers, opened as hf:{folder}"
    assert model.ref == load_model(f"hf:{folder}").ref


def test_folders_are_recognised_by_what_is_in_them(tmp_path: Path) -> None:
    for name, content, answer in [
        ("saved_model.pb", "", "SavedModel of TensorFlow"),
        ("config.json", json.dumps({"architecture": "resnet18"}), "say timm:resnet18 --weights .*model.safetensors"),
        ("config.json", "[]", "a folder in which no model is found.*images, they come second"),
        ("a.jpg", "", "a folder in which no model is found"),
    ]:
        folder = tmp_path / f"{name} {len(content)}"
        folder.mkdir()
        (folder / name).write_text(content)
        (folder / "model.safetensors").touch()
        with pytest.raises(BadInput, match=answer):
            recognised(str(folder))


def test_the_command_says_it_in_one_line(shiftproof: Shiftproof) -> None:
    said = shiftproof("run", "model.joblib", "photos")
    assert said.code == 1
    assert len(said.err.strip().splitlines()) <= 5
    assert "Traceback" not in said.err
    assert "never loaded" in " ".join(said.err.split())
