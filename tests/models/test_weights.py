import io
import os
import pickle
import struct
import zipfile
from pathlib import Path
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
    ours = load_checkpoint(path)
    assert set(ours) == set(state) - {"note"}
    for name, values in ours.items():
        assert np.array_equal(values, state[name].numpy()), name


def test_the_lite_checkpoint_is_read_as_torch_reads_it() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path = checkpoint_of(0)
    theirs = torch.load(path, weights_only=True)
    ours = load_checkpoint(path)
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
    assert np.array_equal(load_checkpoint(tmp_path / "w.pth")["a"], tensor.resolve_neg().resolve_conj().numpy())


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_with_a_member_twice_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.save({"a": torch.ones(3)}, tmp_path / "w.pth")
    with zipfile.ZipFile(tmp_path / "w.pth", "a") as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("data/0"))
        archive.writestr(name, bytes(12))
    with pytest.raises(BadInput, match="data/0' twice"):
        load_checkpoint(tmp_path / "w.pth")


def test_a_tensor_under_both_its_names_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shiftproof.models.classifiers.torch import load_weights

    torch.save({"a": torch.ones(3), "module.a": torch.zeros(3)}, tmp_path / "w.pth")
    with pytest.raises(BadInput, match=r"holds a twice, once as module\.a"):
        load_weights(tmp_path / "w.pth")
