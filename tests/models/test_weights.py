import io
import os
import pickle
import struct
import warnings
import zipfile
from argparse import Namespace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.models.classifiers.lite import checkpoint_of
from shiftproof.models.weights import MAGIC, load_checkpoint


def legacy_file(path: Path, body: bytes) -> Path:
    """A checkpoint in the older format around a pickle of the caller's choice."""
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    path.write_bytes(b"".join(pickle.dumps(part, 2) for part in (MAGIC, 1001, system)) + body)
    return path


def test_tensors_equal_torchs_reading_of_the_same_file(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    base = torch.arange(24, dtype=torch.float32)
    state = {
        "plain": torch.randn(3, 4),
        "transposed": torch.randn(5, 2).t(),
        "part": base.reshape(4, 6)[1:3, ::2],
        "same storage": base[20:],
        "half": torch.randn(7).half(),
        "count": torch.tensor(3),
        "flags": torch.tensor([True, False]),
        "empty": torch.zeros(0, 3),
        "note": "not a tensor",
    }
    path = tmp_path / "state.pth"
    torch.save(state, path, _use_new_zipfile_serialization=False)
    ours = load_checkpoint(path).arrays
    assert set(ours) == set(state) - {"note"}
    for name, values in ours.items():
        assert np.array_equal(values, state[name].numpy()), name


def test_the_lite_checkpoint_is_read_as_torch_reads_it() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path = checkpoint_of(0)
    theirs = torch.load(path, weights_only=True)
    ours = load_checkpoint(path).arrays
    assert set(ours) == set(theirs)
    assert all(np.array_equal(values, theirs[name].numpy()) for name, values in ours.items())


class Malicious:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


def test_a_checkpoint_that_would_run_a_command_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = legacy_file(tmp_path / "evil.pth", pickle.dumps({"weights": Malicious(marker)}, 2))
    with pytest.raises(BadInput, match="only tensors are read"):
        load_checkpoint(path)
    assert not marker.exists()
    # the same bytes do run in an ordinary unpickler: the refusal is ours
    pickle.loads(pickle.dumps({"weights": Malicious(marker)}, 2))
    assert marker.exists()


def test_a_tensor_that_reaches_outside_its_storage_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    buffer = io.BytesIO()
    torch.save({"weights": torch.zeros(4)}, buffer, _use_new_zipfile_serialization=False)
    shape = pickle.dumps((4,), 2)[2:-1]
    larger = pickle.dumps((9,), 2)[2:-1]
    assert buffer.getvalue().count(shape[:3]) >= 1
    path = tmp_path / "long.pth"
    path.write_bytes(buffer.getvalue().replace(shape[:3], larger[:3]))
    with pytest.raises(BadInput, match="outside its storage"):
        load_checkpoint(path)


@pytest.mark.parametrize("kept", [0, 10, 3000, 400_000])
def test_a_checkpoint_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "short.pth"
    path.write_bytes(checkpoint_of(0).read_bytes()[:kept])
    with pytest.raises(BadInput, match=r"short\.pth"):
        load_checkpoint(path)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.pth"
    path.write_bytes(pickle.dumps({"a": 1}, 2) + struct.pack("<q", 3))
    with pytest.raises(BadInput, match="not a checkpoint of torch: it begins with"):
        load_checkpoint(path)


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("rotated", ["negated", "conjugated"])
def test_tensors_that_are_stored_with_other_signs_are_refused(rotated: str, legacy: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    values = torch.arange(3) + (1j if rotated == "conjugated" else 0.0)
    tensor = values.conj() if rotated == "conjugated" else torch._neg_view(values)
    torch.save({"a": tensor}, tmp_path / "w.pth", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(BadInput, match="stored with other signs than it has"):
        load_checkpoint(tmp_path / "w.pth")
    torch.save({"a": tensor.resolve_neg().resolve_conj()}, tmp_path / "w.pth")
    assert np.array_equal(load_checkpoint(tmp_path / "w.pth").arrays["a"], tensor.resolve_neg().resolve_conj().numpy())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_a_member_twice_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"a": torch.ones(3)}, tmp_path / "w.pth")
    with zipfile.ZipFile(tmp_path / "w.pth", "a") as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("data/0"))
        archive.writestr(name, bytes(12))
    with pytest.raises(BadInput, match="data/0' twice"):
        load_checkpoint(tmp_path / "w.pth")


def settings_beside(state: Any, **more: Any) -> dict[str, Any]:
    """What a training keeps: weights, and Python objects that only its own code could make again."""
    return {"epoch": 3, "state_dict": state, "optimizer_states": [{"state": {0: {"step": 5}}}], **more}


@pytest.mark.parametrize("legacy", [True, False])
def test_the_settings_of_a_training_stay_unread_and_its_weights_are_read(legacy: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    marker, path = tmp_path / "ran", tmp_path / "last.ckpt"
    more = {"args": Namespace(rate=0.1, sizes={3, 5}), "when": Malicious(marker), "at": PurePosixPath("x")}
    torch.save(settings_beside({"a": torch.arange(3)}, **more), path, _use_new_zipfile_serialization=not legacy)
    arrays, (note,) = load_checkpoint(path)
    assert arrays.keys() == {"a"}
    assert arrays["a"].tolist() == [0, 1, 2]
    assert (
        "beside its weights, which are not read: 'argparse.Namespace', '__builtin__.set', 'posix.system' and 1 more" in note
    )
    assert not marker.exists()


@pytest.mark.parametrize("where", ["in the weights", "without weights", "in place of them"])
def test_objects_among_the_weights_are_refused(where: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = {"a": torch.arange(3)}
    saved = {
        "in the weights": settings_beside({**state, "b": Namespace()}),
        "without weights": {**state, "args": Namespace()},
        "in place of them": {**state, "state_dict": Namespace()},
    }
    torch.save(saved[where], tmp_path / "last.ckpt")
    with pytest.raises(BadInput, match=r"asks for 'argparse.Namespace'.*only tensors are read"):
        load_checkpoint(tmp_path / "last.ckpt")


def test_other_copies_of_the_weights_are_told(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    state = {"a": torch.arange(3)}
    torch.save(settings_beside(state, state_dict_ema={"a": torch.zeros(3), "b": torch.ones(1)}), tmp_path / "last.pth")
    arrays, notes = load_checkpoint(tmp_path / "last.pth")
    assert arrays["a"].tolist() == [0, 1, 2]
    assert notes == ("last.pth holds these weights also as state_dict_ema, which are not used",)


def linear(torch: Any) -> Any:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


@pytest.mark.parametrize("prefix", ["module.", "model.", "_orig_mod.", "model.backbone."])
def test_weights_under_a_wrappers_name_are_found_and_said(prefix: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.models.classifiers.torch import fill

    state = {prefix + name: tensor for name, tensor in linear(torch).state_dict().items()}
    torch.save(settings_beside({**state, "loss.weight": torch.ones(2)}), tmp_path / "last.ckpt")
    empty = torch.nn.Linear(3, 2)
    notes = fill(empty, tmp_path / "last.ckpt")
    assert torch.equal(empty.weight, linear(torch).weight)
    assert notes == (f"weights are those under {prefix!r} in last.ckpt; 1 others are not used: loss.weight",)


def test_weights_that_are_there_twice_or_not_at_all_are_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.models.classifiers.torch import fill

    state = linear(torch).state_dict()
    twice = {prefix + name: tensor for prefix in ("student.", "teacher.") for name, tensor in state.items()}
    for saved, answer in [
        (twice, r"holds the network 2 times, under student\., teacher\.; save the one you mean alone"),
        ({**state, "module.weight": torch.zeros(2, 3)}, r'do not fit the module: Unexpected key\(s\).*"module.weight"'),
        ({"model.weight": state["weight"]}, r"do not fit the module: Missing key"),
        ({"model.weight": state["weight"].T, "model.bias": state["bias"]}, r"do not fit the module: size mismatch"),
    ]:
        torch.save(saved, tmp_path / "w.pth")
        with pytest.raises(BadInput, match=answer):
            fill(torch.nn.Linear(3, 2), tmp_path / "w.pth")


def test_a_checkpoint_of_lightning_is_read_as_lightning_reads_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    lightning = pytest.importorskip("lightning.pytorch", reason="lightning is not installed")
    from shiftproof.models.classifiers.torch import fill

    class Classifier(lightning.LightningModule):  # type: ignore[misc, name-defined]  # not installed, or a class of any kind
        def __init__(self, rate: float, settings: Any) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.model, self.loss = linear(torch), torch.nn.CrossEntropyLoss(torch.ones(2))

        def training_step(self, batch: Any) -> Any:
            return self.loss(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), self.hparams.rate)

    data = torch.utils.data.TensorDataset(torch.randn(8, 3), torch.tensor([0, 1] * 4))
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", **quiet)
        trainer.fit(trained := Classifier(0.1, Namespace(depth=3)), torch.utils.data.DataLoader(data, batch_size=4))
        trainer.save_checkpoint(tmp_path / "last.ckpt")
    empty = torch.nn.Linear(3, 2)
    notes = fill(empty, tmp_path / "last.ckpt")
    assert torch.equal(empty.weight, trained.model.weight)
    assert not torch.equal(empty.weight, linear(torch).weight)
    assert any("weights are those under 'model.' in last.ckpt; 1 others are not used: loss.weight" in note for note in notes)
    assert any("argparse.Namespace" in note for note in notes)
