"""Model files that try to run a command: each leaves a marker if it succeeds, and none may."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shiftproof.errors import BadInput
from shiftproof.models import load_detector, load_model

torch = pytest.importorskip("torch", reason="torch is not installed")

NETWORK = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
"""

Parts = dict[str, bytes]


class Malicious:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.marker}",)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "ran"


def small_network() -> Any:
    names: dict[str, Any] = {}
    exec(NETWORK, names)
    return names["small"]().eval()


@pytest.fixture
def network(tmp_path: Path) -> Any:
    (tmp_path / "networks.py").write_text(NETWORK)
    return small_network()


@pytest.fixture(scope="module")
def program() -> Parts:
    """The parts of a good exported program with a free number of images."""
    images = torch.export.Dim("images")
    exported = torch.export.export(small_network(), (torch.zeros(2, 3, 16, 16),), dynamic_shapes=({0: images},))
    buffer = io.BytesIO()
    torch.export.save(exported, buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(parts: Parts) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def pickled(marker: Path, **how: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save({"weight": Malicious(marker)}, buffer, **how)
    return buffer.getvalue()


def upper_case(program: Parts, marker: Path) -> bytes:
    """torch's reader finds a part whatever its case, and unpickles what it cannot read as weights."""
    evil = pickled(marker)
    return archive_of(
        {
            (name[:-3] + ".PT" if name.endswith(".pt") else name): evil if name.endswith(".pt") else data
            for name, data in program.items()
        }
    )


def lower_case(program: Parts, marker: Path) -> bytes:
    evil = pickled(marker)
    return archive_of({name: evil if name.endswith(".pt") else data for name, data in program.items()})


def two_directories(program: Parts, marker: Path) -> bytes:
    """The one central directory stands where the archive's end says it does, the other right before that end."""
    evil = pickled(marker)
    longer = {name: data + b" " * 100_000 if name.endswith("model.json") else data for name, data in program.items()}
    hidden = archive_of({name: evil if name.endswith(".pt") else data for name, data in longer.items()})
    (bad_files, bad_list, end), (good_files, good_list, _) = map(_taken_apart, (hidden, archive_of(program)))
    moved, place, shift = bytearray(good_list), 0, len(bad_files) - len(good_files)
    while place < len(moved):
        (offset,) = struct.unpack_from("<L", moved, place + 42)
        struct.pack_into("<L", moved, place + 42, offset + shift)
        place += 46 + sum(struct.unpack_from("<HHH", moved, place + 28))
    both = bad_files + bad_list + good_files + bytes(moved) + end
    assert zipfile.ZipFile(io.BytesIO(both)).testzip() is None  # and there Python sees the good one
    return both


def _taken_apart(archive: bytes) -> tuple[bytes, bytes, bytes]:
    size, offset = struct.unpack("<LL", archive[-10:-2])
    return archive[:offset], archive[offset : offset + size], archive[-22:]


def expression(program: Parts, marker: Path) -> bytes:
    """torch gives the sizes of an exported program to sympy, which evaluates them."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: evil if key == "expr_str" else changed(inner) for key, inner in value.items()}
        return [changed(inner) for inner in value] if isinstance(value, list) else value

    evil = f"__import__('os').system('touch {marker}')"
    return archive_of(
        {
            name: json.dumps(changed(json.loads(data))).encode() if name.endswith("models/model.json") else data
            for name, data in program.items()
        }
    )


WAYS: dict[str, Callable[[Parts, Path], bytes]] = {
    way.__name__: way for way in (lower_case, upper_case, two_directories, expression)
}


def ask(file: Path, **options: Any) -> None:
    load_model(f"torch:{file}", classes=list("abcde"), preprocess="imagenet,size=16", **options)


@pytest.mark.parametrize("way", WAYS)
def test_an_exported_program_runs_nothing_unless_it_is_trusted(
    way: str, program: Parts, marker: Path, tmp_path: Path
) -> None:
    file = tmp_path / "evil.pt2"
    file.write_bytes(WAYS[way](program, marker))
    try:
        with pytest.raises(BadInput, match=r"is a program \(exported program\).*--trust.*ONNX.*safetensors"):
            ask(file)
    finally:
        assert not marker.exists(), "the file ran a command"
    with pytest.raises(BadInput, match="any code on this machine"):
        load_detector(f"torch:{file}")
    with pytest.raises(BadInput, match="any code on this machine"):
        load_model(f"boxes:torch:{file}")
    with pytest.raises(BadInput, match="any code on this machine"):
        load_model("proposals:lite:0", proposals=f"torch:{file}")
    assert not marker.exists()


@pytest.mark.parametrize("way", WAYS)
def test_an_exported_program_is_no_weights(way: str, program: Parts, marker: Path, tmp_path: Path) -> None:
    (tmp_path / "networks.py").write_text(NETWORK)
    file = tmp_path / "evil.pth"
    file.write_bytes(WAYS[way](program, marker))
    with pytest.raises(BadInput, match=r"evil\.pth"):
        load_model(f"torch:{tmp_path / 'networks.py'}:small", weights=str(file))
    assert not marker.exists()


def test_a_trusted_program_runs_what_it_says(program: Parts, marker: Path, tmp_path: Path) -> None:
    """What --trust warns of is true; without this, the tests above could pass for files that never ran anything."""
    file = tmp_path / "evil.pt2"
    file.write_bytes(expression(program, marker))
    with pytest.raises(BadInput, match="cannot be loaded as exported program"):
        ask(file, trust=True)
    assert marker.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_needs_trust_and_a_pickle_among_its_constants_does_not_run(
    network: Any, marker: Path, tmp_path: Path
) -> None:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.trace(network, torch.zeros(1, 3, 16, 16)), buffer)
    with zipfile.ZipFile(buffer) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    evil = pickle.dumps(Malicious(marker), 2)
    for ending in ("constants.pkl", "CONSTANTS.PKL"):
        named = {
            name.replace("constants.pkl", ending): evil if "constants" in name else data for name, data in parts.items()
        }
        (tmp_path / "script.pt").write_bytes(archive_of(named))
        with pytest.raises(BadInput, match=r"is a program \(TorchScript file\)"):
            ask(tmp_path / "script.pt")
    (tmp_path / "good.ts").write_bytes(buffer.getvalue())
    with pytest.raises(BadInput, match=r"is a program \(TorchScript file\)"):
        ask(tmp_path / "good.ts")
    assert not marker.exists()


def zipped(marker: Path) -> bytes:
    return pickled(marker)


def legacy(marker: Path) -> bytes:
    return pickled(marker, _use_new_zipfile_serialization=False)


def plain_pickle(marker: Path) -> bytes:
    return pickle.dumps(Malicious(marker))


def first_pickle(marker: Path) -> bytes:
    """The magic number itself is what runs."""
    return pickle.dumps(Malicious(marker), 2) + legacy(marker)


def upper_case_pickle(marker: Path) -> bytes:
    return archive_of({"archive/DATA.PKL": pickle.dumps(Malicious(marker), 2), "archive/data.pkl": pickle.dumps({}, 2)})


def nested(marker: Path) -> bytes:
    return archive_of({"archive/data.pkl": zipped(marker), "archive/data/0": zipped(marker)})


def behind_a_prefix(marker: Path) -> bytes:
    return b"#!/bin/sh\n" + zipped(marker)


def in_a_tar(marker: Path) -> bytes:
    """How torch saved before 0.1.10: pickles in a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("pickle", "storages", "tensors"):
            data = pickle.dumps(Malicious(marker), 2)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def by_the_stack(marker: Path) -> bytes:
    """Protocol 4 takes the name of what it calls from the stack."""
    return archive_of({"archive/data.pkl": pickle.dumps({"weight": Malicious(marker)}, 4)})


def by_state(marker: Path) -> bytes:
    """Attributes set on a dictionary, and a call of what is no function."""
    return archive_of(
        {"archive/data.pkl": b"\x80\x02}X\x01\x00\x00\x00a" + pickle.dumps(Malicious(marker), 2)[2:-1] + b"s."}
    )


def through_an_allowed_name(marker: Path) -> bytes:
    """A dotted name behind an allowed module."""
    command = f"touch {marker}".encode()
    call = b"ctorch._utils\n_rebuild_tensor_v2.__globals__\n" + b"X" + struct.pack("<L", len(command)) + command
    return archive_of({"archive/data.pkl": b"\x80\x04" + call + b"\x85R."})


CHECKPOINTS = {
    way.__name__: way
    for way in (
        *(zipped, legacy, plain_pickle, first_pickle, upper_case_pickle, nested, behind_a_prefix, in_a_tar),
        *(by_the_stack, by_state, through_an_allowed_name),
    )
}


@pytest.mark.parametrize("ending", [".pth", ".pt", ".bin", ".ckpt", ".safetensors"])
@pytest.mark.parametrize("way", CHECKPOINTS)
def test_weights_run_nothing_and_are_refused_with_a_sentence(
    way: str, ending: str, network: Any, marker: Path, tmp_path: Path
) -> None:
    file = tmp_path / f"evil{ending}"
    file.write_bytes(CHECKPOINTS[way](marker))
    for load in (
        lambda: load_model(f"torch:{tmp_path / 'networks.py'}:small", weights=str(file)),
        lambda: ask(file),
        lambda: ask(file, weights=None),
    ):
        with pytest.raises(BadInput, match=r"evil\."):
            load()
    assert not marker.exists()


def test_a_module_saved_whole_is_refused_with_advice(network: Any, tmp_path: Path) -> None:
    torch.save(network, tmp_path / "whole.pt")
    with pytest.raises(BadInput, match=r"pickled Python objects.*state_dict.*ONNX.*safetensors"):
        ask(tmp_path / "whole.pt")


def weights_of(network: Any, **how: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(network.state_dict(), buffer, **how)
    return buffer.getvalue()


def fill(network: Any, file: Path) -> None:
    load_model(
        f"torch:{file.parent / 'networks.py'}:small", weights=str(file), classes=list("abcde"), preprocess="imagenet,size=16"
    )


def repeated(network: Any) -> bytes:
    """One number that claims to be a tensor of four terabytes."""
    state = {**network.state_dict(), "0.weight": torch.zeros(1).expand(1 << 40)}
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def large_memo(_network: Any) -> bytes:
    """Python's own unpickler makes room for as many entries as the place of this one."""
    return archive_of({"archive/data.pkl": b"\x80\x02}r\xff\xff\xff\x7f."})


def deep_key(_network: Any) -> bytes:
    """A key nested so deep that its hash overflows the stack of the process."""
    return archive_of({"archive/data.pkl": b"\x80\x02})" + b"\x85" * 250_000 + b"Ns."})


def overlapping(network: Any) -> bytes:
    """Storages that all lie in the same bytes of the file, and together are larger than it."""
    size, count = 1 << 20, 64
    data = archive_of({"archive/data.pkl": b"", "archive/data/0": bytes(4 * size)})
    files, listed, end = _taken_apart(data)
    first = 46 + sum(struct.unpack_from("<HHH", listed, 28))
    description = _description([(f"{key}", size) for key in range(count)])
    with_pickle = archive_of({"archive/data.pkl": description, "archive/data/0": bytes(4 * size)})
    files, listed, end = _taken_apart(with_pickle)
    entry = listed[first:]
    more = b"".join(
        entry[:28] + struct.pack("<H", len(f"archive/data/{key}")) + entry[30:46] + f"archive/data/{key}".encode()
        for key in range(count)
    )
    listed = listed[:first] + more
    end = end[:8] + struct.pack("<HHLL", count + 1, count + 1, len(listed), len(files)) + end[20:]
    return files + listed + end


def _description(storages: list[tuple[str, int]]) -> bytes:
    def text(word: str) -> bytes:
        return b"X" + struct.pack("<L", len(word)) + word.encode()

    def whole(number: int) -> bytes:
        return b"J" + struct.pack("<l", number)

    items = b""
    for key, size in storages:
        saved = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu") + whole(size) + b"tQ"
        shape = whole(size) + b"\x85" + whole(1) + b"\x85"
        items += text(f"w{key}") + b"ctorch._utils\n_rebuild_tensor_v2\n(" + saved + whole(0) + shape + b"\x89)tR"
    return b"\x80\x02}(" + items + b"u."


def one_storage_two_kinds(_network: Any) -> bytes:
    described = _description([("0", 2)])[:-2] + _description([("0", 4)])[4:]
    return archive_of({"archive/data.pkl": described, "archive/data/0": bytes(8)})


def compressed(network: Any) -> bytes:
    """A storage of a gigabyte in a megabyte of file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", _description([("0", 1 << 24)]))
        archive.writestr("archive/data/0", bytes(1 << 26))
    return buffer.getvalue()


def long_pickle(_network: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + b"}" * (1 << 26) + b".")
    return buffer.getvalue()


def many_dictionaries(_network: Any) -> bytes:
    """As many as fit into the most that is read, one a byte."""
    return archive_of({"archive/data.pkl": b"\x80\x02" + b"}" * (4 * 1024 * 1024 - 3) + b"."})


def huge_length(_network: Any) -> bytes:
    """Text of which the file says it is four exabytes long, in the older format."""
    return legacy_start() + b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62)


def legacy_start() -> bytes:
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {}}
    return b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, system))


def negative_length(_network: Any) -> bytes:
    return archive_of({"archive/data.pkl": _description([("0", -4)]), "archive/data/0": b""})


def folder_above(_network: Any) -> bytes:
    return archive_of({"archive/data.pkl": _description([("../../../etc/passwd", 4)])})


def lone_surrogate(_network: Any) -> bytes:
    return archive_of(
        {"archive/data.pkl": b"\x80\x02}X\x03\x00\x00\x00\xed\xa0\x80" + _description([("0", 1)])[8:-2] + b"s."}
    )


NESTED = b")" + b"\x85" * 250_000
"""A tuple in a tuple and so on: its hash overflows the stack of the process."""


def deep_name(_network: Any) -> bytes:
    return archive_of({"archive/data.pkl": b"\x80\x04" + NESTED + b"\x8c\x01a\x93."})


def deep_kind(_network: Any) -> bytes:
    return archive_of({"archive/data.pkl": b"\x80\x02(X\x07\x00\x00\x00storage" + NESTED + b"X\x01\x00\x00\x000NK\x01tQ."})


def deep_storage_key(_network: Any) -> bytes:
    return legacy_start() + pickle.dumps({}, 2) + b"\x80\x02](" + NESTED + b"e."


def made_of_little(_network: Any) -> bytes:
    """A list of a million numbers, copied two hundred thousand times by three instructions each."""
    numbers = b"(" + b"K\x01" * 1_000_000 + b"lq\x00"
    return archive_of(
        {"archive/data.pkl": b"\x80\x02]" + numbers + b"ctorch\nSize\nq\x01" + b"h\x01h\x00\x85R" * 200_000 + b"."}
    )


def many_axes(_network: Any) -> bytes:
    axes = b"(" + b"K\x01" * 1_000_000 + b"tq\x00"
    saved = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000NK\x01tQq\x01"
    tensors = b"ctorch._utils\n_rebuild_tensor_v2\nq\x02" + b"h\x02(h\x01K\x00h\x00h\x00tR" * 200_000
    return archive_of({"archive/data.pkl": b"\x80\x02" + axes + saved + tensors + b".", "archive/data/0": bytes(4)})


def same_hash(_network: Any) -> bytes:
    """Numbers that all have one hash, as the keys of a dictionary: each is compared with all before it."""
    keys = b"".join(b"\x8a\x0b" + (place * (2**61 - 1)).to_bytes(11, "little") + b"N" for place in range(1, 1_000_000))
    return archive_of({"archive/data.pkl": b"\x80\x02}(" + keys + b"u."})


def same_hash_in_the_memo(_network: Any) -> bytes:
    puts = b"".join(b"p%d\n" % (place * (2**61 - 1)) for place in range(1, 500_000))
    return archive_of({"archive/data.pkl": b"\x80\x02}" + puts + b"."})


DAMAGED = {
    way.__name__: way
    for way in (
        *(
            repeated,
            large_memo,
            deep_key,
            overlapping,
            one_storage_two_kinds,
            compressed,
            long_pickle,
            many_dictionaries,
            huge_length,
        ),
        *(negative_length, folder_above, lone_surrogate, deep_name, deep_kind, deep_storage_key, made_of_little, many_axes),
        *(same_hash, same_hash_in_the_memo),
    )
}


@pytest.mark.parametrize("way", DAMAGED)
def test_weights_that_would_fill_the_memory_or_end_the_process_are_refused(way: str, network: Any, tmp_path: Path) -> None:
    import resource

    file = tmp_path / "odd.pth"
    file.write_bytes(DAMAGED[way](network))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadInput, match=r"odd\.pth"):
        fill(network, file)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


@pytest.mark.parametrize("how", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_a_checkpoint_cut_anywhere_or_with_any_byte_changed_is_refused_or_read(
    how: dict[str, Any], network: Any, tmp_path: Path
) -> None:
    from random import Random

    from shiftproof.models.classifiers.torch import load_weights

    whole, file, random = weights_of(network, **how), tmp_path / "odd.pth", Random(0)
    refused = 0
    for kept in [*range(0, len(whole), len(whole) // 40), len(whole) - 1]:
        file.write_bytes(whole[:kept])
        with pytest.raises(BadInput, match=r"odd\.pth"):
            load_weights(file)
    for _ in range(300):
        changed = bytearray(whole)
        changed[random.randrange(len(whole))] = random.randrange(256)
        file.write_bytes(changed)
        try:
            load_weights(file)
        except BadInput:
            refused += 1
    assert refused > 30


@pytest.mark.parametrize("how", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_every_kind_of_tensor_is_read_as_torch_reads_it(how: dict[str, Any], tmp_path: Path) -> None:
    from shiftproof.models.classifiers.torch import load_weights

    base = torch.arange(24.0)
    state = {
        "plain": torch.randn(3, 4),
        "parameter": torch.nn.Parameter(torch.randn(2, 2)),
        "transposed": torch.randn(5, 2).t(),
        "part": base.reshape(4, 6)[1:3, ::2],
        "same storage": base[20:],
        "expanded": torch.randn(3, 1).expand(3, 4),
        "half": torch.randn(7).half(),
        "bfloat16": torch.randn(50).bfloat16(),
        "count": torch.tensor(3),
        "flags": torch.tensor([True, False]),
        "complex": torch.randn(3, dtype=torch.complex64),
        "empty": torch.zeros(0, 3),
        **{
            str(kind): torch.arange(5).to(kind)
            for kind in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float64)
        },
    }
    file = tmp_path / "state.pth"
    for saved in (state, {"model_state_dict": state, "epoch": 3, "shape": torch.Size([2])}):
        torch.save(saved, file, **how)
        ours, _ = load_weights(file)
        assert list(ours) == list(state)
        assert all(torch.equal(ours[name].to(value.dtype), value) for name, value in state.items())


def safetensors(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


@pytest.mark.parametrize(
    "content",
    [
        safetensors(b"{}", length=1 << 60),
        safetensors(b"{}", length=(1 << 64) - 1),
        safetensors(
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}',
            bytes(12),
        ),
        safetensors(b'{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4]}}', bytes(4)),
        safetensors(b'{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}'),
        safetensors(b"[" * 100_000),
        b"\0\0\0",
    ],
    ids=["long header", "longest header", "overlap", "large shape", "overflowing shape", "deep", "short"],
)
def test_a_hostile_safetensors_file_gets_a_sentence(content: bytes, network: Any, tmp_path: Path) -> None:
    file = tmp_path / "odd.safetensors"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"odd\.safetensors is not a whole safetensors file"):
        fill(network, file)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize("ending", [".pth", ".safetensors", ".pt2"])
@pytest.mark.parametrize(
    ("content", "answer"),
    [
        (LFS, "Git LFS pointer.*git lfs pull"),
        (b"", "is empty"),
        (
            b"<!DOCTYPE html>\n<html>Not found</html>\n",
            "not a checkpoint of torch: it begins with|not a whole safetensors file",
        ),
    ],
    ids=["pointer", "empty", "text"],
)
def test_what_is_no_weights_file_gets_a_sentence(
    ending: str, content: bytes, answer: str, network: Any, tmp_path: Path
) -> None:
    file = tmp_path / f"odd{ending}"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=answer):
        fill(network, file)
    with pytest.raises(BadInput, match=answer):
        ask(file)


def test_what_is_no_file_gets_a_sentence(network: Any, tmp_path: Path) -> None:
    (tmp_path / "folder.pth").mkdir()
    os.mkfifo(tmp_path / "pipe.pth")
    for name, answer in [
        ("folder.pth", "is a folder; a file was expected"),
        ("pipe.pth", "is a pipe or a device; a file was expected"),
        ("none.pth", "there is no file"),
        ("networks.py/a.pth", "there is no file"),
        ("a\0b.pth", "names no file"),
        ("x" * 5000 + ".pth", "cannot be read: File name too long"),
    ]:
        with pytest.raises(BadInput, match=answer):
            fill(network, tmp_path / name)
        with pytest.raises(BadInput, match=answer):
            ask(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_gets_a_sentence(network: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.pth").write_bytes(weights_of(network))
    (tmp_path / "mine.pth").chmod(0)
    with pytest.raises(BadInput, match="cannot be read: Permission denied"):
        fill(network, tmp_path / "mine.pth")
