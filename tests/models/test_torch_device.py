"""The way of batches to a GPU and back, with a stand-in that does queued work as late as it may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shiftproof.models import load_detector, load_model
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import ModelOptions

torch = pytest.importorskip("torch", reason="torch is not installed")

from shiftproof.models.classifiers import torch as torch_models  # noqa: E402
from shiftproof.models.classifiers.torch_device import AT_ONCE, Cuda, Transfers, tensor_float, transfers_of  # noqa: E402

NETWORKS = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))

def patches():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 8, 8), nn.Flatten(), nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5))

class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, images):
        return [{"boxes": torch.stack([torch.tensor([0.0, 0, 8, 8]), torch.tensor([4.0, 4, 12, 12])]),
                 "scores": torch.sigmoid(image.mean()) * torch.tensor([1.0, 0.5]),
                 "labels": torch.tensor([1, 2])} for image in images]
"""


class LateEvent:
    """Queued work that is done when somebody waits for it, and not before."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work: Callable[[], object] | None = work
        self.waiting = Lock()

    def synchronize(self) -> None:
        with self.waiting:  # a second thread waits until the first has done the work
            if self.work is not None:
                self.work()
            self.work = None


class LateGpu:
    """A device in the host's memory whose copies are made at the last moment: whoever does not wait reads rubbish."""

    def __init__(self) -> None:
        self.locked: list[int] = []
        self.uploads = self.downloads = 0

    def page_locked(self, size: int) -> Any:
        self.locked.append(size)
        return torch.full((size,), 255, dtype=torch.uint8)

    def upload(self, staged: Any) -> tuple[Any, LateEvent]:
        self.uploads += 1
        there = torch.full_like(staged, 77)
        return there, LateEvent(lambda: there.copy_(staged))

    def wait_for(self, uploaded: Any, event: LateEvent) -> None:
        event.synchronize()

    def download(self, tensors: Sequence[Any], staged: Sequence[Any]) -> LateEvent:
        self.downloads += 1
        return LateEvent(lambda: [place.copy_(tensor) for tensor, place in zip(tensors, staged, strict=True)])


def load(home: Path, name: str = "small", **options: Any) -> LoadedClassifier:
    (home / "networks.py").write_text(NETWORKS)
    settings = {"classes": list("abcde"), "preprocess": "imagenet,size=16", **options}
    model = load_model(f"torch:{home / 'networks.py'}:{name}", **settings)
    assert isinstance(model, LoadedClassifier)
    return model


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> LateGpu:
    """Models that are loaded from now on run through the stand-in."""
    found = LateGpu()
    monkeypatch.setattr(torch_models, "transfers_of", lambda _: Transfers(found))
    return found


def batches(count: int, images: int = 3) -> list[Any]:
    return list(np.random.default_rng(1).normal(size=(count, images, 3, 16, 16)).astype(np.float32))


def test_a_buffer_is_overwritten_only_after_its_copy() -> None:
    gpu = LateGpu()
    transfers = Transfers(gpu)
    tensors = [torch.full((4,), float(number)) for number in range(3 * AT_ONCE)]
    uploaded = [transfers.upload(tensor) for tensor in tensors]  # none of them has been waited for
    assert [transfers.arrived(one).tolist() for one in uploaded] == [tensor.tolist() for tensor in tensors]
    assert len(gpu.locked) == AT_ONCE


def test_the_callers_memory_is_free_once_the_upload_has_begun() -> None:
    transfers, batch = Transfers(LateGpu()), torch.ones(5)
    uploaded = transfers.upload(batch)
    batch.fill_(9)  # the workers put the next images there
    assert transfers.arrived(uploaded).tolist() == [1.0] * 5


def test_results_come_in_memory_of_their_own_after_one_wait() -> None:
    gpu = LateGpu()
    transfers = Transfers(gpu)
    kinds = [torch.arange(3.0), torch.arange(70), torch.ones((2, 2), dtype=torch.float16), torch.zeros((0, 4))]
    first = transfers.begin_download(kinds).tensors()
    assert gpu.downloads == 1
    for _ in range(AT_ONCE):
        transfers.begin_download([torch.full((600,), 5.0)]).tensors()  # the buffers are used again
    assert all(torch.equal(one, kind) and one.dtype == kind.dtype for one, kind in zip(first, kinds, strict=True))


def test_memory_is_locked_again_only_for_a_larger_batch() -> None:
    gpu = LateGpu()
    transfers = Transfers(gpu)
    for size in [100, 100, 100, 100, 40, 100]:
        transfers.arrived(transfers.upload(torch.zeros(size)))
    assert gpu.locked == [448] * AT_ONCE  # 400 bytes in steps of 64
    for _ in range(2 * AT_ONCE):
        transfers.arrived(transfers.upload(torch.zeros(1000)))
    assert gpu.locked == [448] * AT_ONCE + [4032] * AT_ONCE


def test_a_model_on_a_gpu_gives_what_it_gives_on_the_cpu_from_several_threads(gpu: LateGpu, tmp_path: Path) -> None:
    model = load(tmp_path)
    assert (model.concurrent_batches, model.default_batch_size) == (AT_ONCE, 64)
    gpu.uploads = gpu.downloads = 0
    asked = batches(40)
    with ThreadPoolExecutor(4) as threads:  # more than there are buffers
        found = list(threads.map(lambda batch: model(batch, features=True), asked))
    assert (gpu.uploads, gpu.downloads) == (40, 40)  # scores and features come together
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch_models, "transfers_of", transfers_of)
        plain = load(tmp_path)
    assert plain.concurrent_batches == 1
    assert plain.ref == model.ref
    for batch, outputs in zip(asked, found, strict=True):
        expected = plain(batch, features=True)
        assert expected.features is not None
        assert np.array_equal(outputs.scores, expected.scores)
        assert np.array_equal(np.asarray(outputs.features), expected.features)


def test_boxes_of_a_batch_come_back_together(gpu: LateGpu, tmp_path: Path) -> None:
    (tmp_path / "networks.py").write_text(NETWORKS)
    detector = load_detector(f"torch:{tmp_path / 'networks.py'}:Boxes", classes=["a", "b", "c"], preprocess="squash,size=16")
    gpu.downloads = 0
    images = batches(1, images=4)[0]
    found = detector.detect(images, [(16, 16)] * 4)
    assert gpu.downloads == 1
    for image, one in zip(images, found, strict=True):
        top = 1 / (1 + np.exp(-image.mean(dtype=np.float64)))
        assert np.allclose(one.scores, [top, top / 2], atol=1e-6)
        assert one.boxes.tolist() == [[0, 0, 8, 8], [4, 4, 12, 12]]


def test_a_failing_batch_gives_its_buffers_back(gpu: LateGpu, tmp_path: Path) -> None:
    model = load(tmp_path)
    for _ in range(3 * AT_ONCE):
        with pytest.raises(RuntimeError, match="channels"):
            model(np.zeros((2, 4, 16, 16), np.float32))
    assert model(batches(1)[0]).scores.shape == (3, 5)
    assert gpu.downloads


def test_cuda_is_asked_for_page_locked_memory_copies_that_do_not_block_and_the_right_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The order of calls alone; what they do is known only to a GPU."""
    calls: list[Any] = []
    streams = {"uploads": SimpleNamespace(wait_event=None), "computing": SimpleNamespace()}
    streams["computing"].wait_event = lambda event: calls.append(("computing waits", event.number))

    class Event:
        def __init__(self, *, blocking: bool) -> None:
            assert blocking  # a thread that waits leaves its core to others
            self.number = sum(call[0] == "event" for call in calls)

        def record(self, stream: Any) -> None:
            calls.append(("event", next(name for name, one in streams.items() if one is stream)))

    class Memory:
        def to(self, device: Any, *, non_blocking: bool) -> Memory:
            calls.append(("to", str(device), non_blocking, inside[-1]))
            return self

        def copy_(self, _: Any, *, non_blocking: bool) -> None:
            calls.append(("copy", non_blocking))

        def record_stream(self, stream: Any) -> None:
            assert stream is streams["computing"]
            calls.append(("kept for", "computing"))

    inside = ["computing"]

    @contextmanager
    def stream(which: Any) -> Any:
        inside.append(next(name for name, one in streams.items() if one is which))
        yield
        inside.pop()

    monkeypatch.setattr(torch.cuda, "Stream", lambda _: streams["uploads"])
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: streams["computing"])
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch, "empty", lambda size, **how: calls.append(("empty", size, how["pin_memory"])))
    cuda: Any = Cuda(torch.device("cuda:1"))
    cuda.page_locked(64)
    cuda.wait_for(*cuda.upload(Memory()))
    cuda.download([Memory()], [Memory()])
    assert calls == [
        ("empty", 64, True),
        ("to", "cuda:1", True, "uploads"),
        ("event", "uploads"),
        ("computing waits", 0),
        ("kept for", "computing"),
        ("copy", True),
        ("event", "computing"),
    ]


def test_only_a_network_of_convolutions_below_float32_on_a_gpu_is_laid_out_by_channels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def laid_out(name: str, kind: str, **options: Any) -> bool:
        with monkeypatch.context() as patch:
            real = torch.device
            patch.setattr(torch, "device", lambda _: SimpleNamespace(type=kind))
            patch.setattr(torch.nn.Module, "to", lambda self, *_, **__: self)
            patch.setattr(torch_models, "transfers_of", lambda _: None)
            options = {"device": kind, **options}
            namespace: dict[str, Any] = {}
            exec(NETWORKS, namespace)
            network = torch_models.network_of(namespace[name](), ModelOptions(**options))
            assert torch.device is not real
        return network.channels_last

    assert laid_out("small", "cuda", precision="bfloat16")
    assert laid_out("small", "cuda", precision="tf32")
    assert not laid_out("patches", "cuda", precision="float16")  # as in a vision transformer, most of it is linear
    assert not laid_out("small", "cuda")
    assert not laid_out("small", "cpu", precision="bfloat16")
    assert not laid_out("small", "cuda", precision="float16", channels_last=False)
    assert laid_out("patches", "cpu", channels_last=True)


def test_float32_on_cuda_is_float32_unless_tf32_is_named(tmp_path: Path) -> None:
    flags = [torch.backends.cudnn, torch.backends.cuda.matmul]
    before = [flag.allow_tf32 for flag in flags]
    for allowed in (True, False):
        with tensor_float(torch.device("cuda"), allowed):
            assert [flag.allow_tf32 for flag in flags] == [allowed] * 2
        assert [flag.allow_tf32 for flag in flags] == before
    prints = {load(tmp_path, precision=name).ref.fingerprint for name in torch_models.PRECISIONS}
    assert len(prints) == len(torch_models.PRECISIONS) == 4  # rows of each are kept apart


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU here")
@pytest.mark.parametrize(("precision", "most"), [("float32", 1e-4), ("tf32", 1e-2), ("bfloat16", 0.1), ("float16", 0.05)])
def test_a_real_gpu_gives_nearly_what_the_cpu_gives(tmp_path: Path, precision: str, most: float) -> None:
    there, here = load(tmp_path, device="cuda", precision=precision), load(tmp_path)
    asked = batches(12, images=64)
    with ThreadPoolExecutor(there.concurrent_batches) as threads:
        found = list(threads.map(lambda batch: there(batch, features=True), asked))
    for batch, outputs in zip(asked, found, strict=True):
        assert np.abs(outputs.scores - here(batch).scores).max() < most
