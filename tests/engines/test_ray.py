"""Predictions on a real Ray cluster of two nodes: the same rows as here, whatever dies or joins meanwhile."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from ray_cluster import BATCH, DEADLINE, actors, add_node, die, nodes, noted, noting_model, on_node, once, stored, wait_for
from shiftproof.datasets.image_list import FileImage, ImageList, some_of
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.runs.engines import Unfit, WorkFailed, predicting
from shiftproof.runs.write import RowWriter
from shiftproof.types import Classifier, Dataset
from toys import COLOURS, colour_scores

pytest.importorskip("ray", reason="ray is not installed: pip install 'shiftproof[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")

SETTINGS = sp.PredictionSettings(batch_size=BATCH, quiet=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with nodes(2) as started:
        yield started


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> Dataset:
    return sp.open_dataset(str(draw_photos(8)))


def study(model: Classifier, images: Dataset) -> Any:
    return sp.CorruptionStudy(
        models=[model], dataset=images, corruptions=["brightness", "gaussian_noise"], severities=[1, 4]
    )


def fill(model: Classifier | str, images: Dataset, store: Path, engine: Any = None, **more: Any) -> Any:
    studies = None if isinstance(model, str) else [study(model, images)]
    return sp.store_predictions(model, images, studies=studies, store=store, prediction=SETTINGS, engine=engine, **more)


def at(cluster: Any) -> str:
    return f"ray://{cluster.address}"


class Silent:
    """Progress that shows nothing."""

    def begin(self, what: str, total: int, done: int) -> None: ...

    def advance(self, images: int) -> None: ...

    def end(self) -> None: ...


class Background(threading.Thread):
    """Does something beside the run; its error is raised when it is joined."""

    def __init__(self, do: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._do = do
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._do()
        except BaseException as error:
            self._error = error

    def join(self, timeout: float | None = DEADLINE) -> None:
        super().join(timeout)
        if self._error is not None:
            raise self._error


def test_rows_are_those_of_a_run_here_and_none_is_computed_twice(cluster: Any, photos: Dataset, tmp_path: Path) -> None:
    said: list[str] = []
    model = noting_model(tmp_path / "notes")
    tally = fill(model, photos, tmp_path / "ray", at(cluster), tell=said.append)
    batches = noted(tmp_path / "notes")
    assert sum(images for _, images in batches) == tally.predicted == 5 * len(photos.samples)
    assert str(os.getpid()) not in {node for node, _ in batches}
    assert re.fullmatch(r"ray: \d\.\d+ CPU hours on \d nodes?; workers read \d+\.\d+ GB and wrote \d+\.\d+ GB", said[-1])
    fill(model, photos, tmp_path / "here")
    assert stored(tmp_path / "ray") == stored(tmp_path / "here")
    again = fill(model, photos, tmp_path / "ray", at(cluster))
    assert (again.predicted, again.stored_before) == (0, tally.predicted)


def test_workers_that_see_the_store_write_their_rows_and_others_send_them(
    cluster: Any, photos: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_here: list[int] = []
    write = RowWriter.write

    def counted(writer: RowWriter, job: Any, *rest: Any) -> Any:
        written_here.append(len(job.ids))
        return write(writer, job, *rest)

    monkeypatch.setattr(RowWriter, "write", counted)
    fill(noting_model(tmp_path / "notes"), photos, tmp_path / "shared", at(cluster))
    assert written_here == []
    monkeypatch.setattr(predicting, "token_in", lambda folder: nullcontext(folder / "that-nobody-sees"))
    tally = fill(noting_model(tmp_path / "more"), photos, tmp_path / "sent", at(cluster))
    assert sum(written_here) == tally.predicted == 5 * len(photos.samples)
    assert stored(tmp_path / "shared") == stored(tmp_path / "sent")


def test_the_batches_of_a_killed_node_are_done_elsewhere(cluster: Any, photos: Dataset, tmp_path: Path) -> None:
    notes, victim = tmp_path / "notes", add_node(cluster)
    doomed: str = victim.node_id

    def has_begun() -> bool:
        return doomed in {node for node, _ in noted(notes)}

    def stall(node: str, _: Path) -> None:
        wait_for(has_begun)  # others leave it some work
        wait_for(lambda: node != doomed)  # which it never ends: the node dies over its first batch

    killer = Background(lambda: (wait_for(has_begun), cluster.remove_node(victim, allow_graceful=False)))
    tally = fill(noting_model(notes, stall), photos, tmp_path / "ray", at(cluster))
    killer.join()
    lost = sum(images for node, images in noted(notes) if node == doomed)
    assert lost == BATCH
    assert sum(images for _, images in noted(notes)) == tally.predicted + lost
    fill(noting_model(tmp_path / "others"), photos, tmp_path / "here")
    assert stored(tmp_path / "ray") == stored(tmp_path / "here")


def test_the_batches_of_a_killed_worker_are_done_again(cluster: Any, photos: Dataset, tmp_path: Path) -> None:
    def stall(_: str, notes: Path) -> None:
        if once(notes, "killed"):
            die()

    model = noting_model(tmp_path / "notes", stall)
    tally = fill(model, photos, tmp_path / "ray", at(cluster))
    assert sum(images for _, images in noted(tmp_path / "notes")) == tally.predicted + BATCH
    fill(noting_model(tmp_path / "others"), photos, tmp_path / "here")
    assert stored(tmp_path / "ray") == stored(tmp_path / "here")


def test_a_node_that_joins_gets_work(cluster: Any, photos: Dataset, tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def stall(_: str, notes: Path) -> None:
        if not once(notes, "first"):
            wait_for(lambda: (notes / "joined").exists())
            wait_for(lambda: (notes / "joined").read_text() in {node for node, _ in noted(notes)})  # nobody goes on before

    joined: list[Any] = []

    class AddNode(Silent):
        """Progress that adds a node after the first batch."""

        def advance(self, images: int) -> None:
            if not joined:
                joined.append(add_node(cluster))
                write_whole(notes / "joined", joined[0].node_id.encode())

    tally = fill(noting_model(notes, stall), photos, tmp_path / "ray", at(cluster), progress=AddNode())
    cluster.remove_node(joined[0])
    assert joined[0].node_id in {node for node, _ in noted(notes)}
    assert sum(images for _, images in noted(notes)) == tally.predicted


def test_a_batch_that_ends_every_worker_is_given_up_and_named(cluster: Any, tmp_path: Path) -> None:
    for number in range(12):
        path = tmp_path / "photos" / "grey" / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Pillow.new("RGB", (24, 24), (200 if number == 5 else 90,) * 3).save(path)
    images = sp.open_dataset(str(tmp_path / "photos"))

    def forward(inputs: Any) -> Any:
        if inputs.mean(axis=(1, 2, 3)).max() > 0.6:
            die()
        return inputs.mean(axis=(2, 3))

    model = sp.wrap_model(forward, name="fragile", version="1", class_names=list("abc"), size=(16, 16), preprocess="unit")
    with pytest.raises(WorkFailed, match=r"1 blocks failed: grey/04\.png to grey/07\.png under clean \(its worker died"):
        sp.store_predictions(model, images, store=tmp_path / "ray", prediction=SETTINGS, engine=at(cluster))
    names = [
        key for files in stored(tmp_path / "ray").values() for metadata, _ in files for key in json.loads(metadata["ids"])
    ]
    assert sorted(names) == [f"grey/{number:02}.png" for number in (0, 1, 2, 3, 8, 9, 10, 11)]


def test_another_version_is_refused_with_both_named(
    cluster: Any, photos: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = sp.__version__
    monkeypatch.setattr(sp, "__version__", "9.9")
    with pytest.raises(Unfit, match=f"shiftproof {own} there, 9.9 here"):
        fill(noting_model(tmp_path / "notes"), photos, tmp_path / "ray", at(cluster))


def test_images_that_a_node_lacks_are_no_fault_of_the_images(cluster: Any, photos: ImageList, tmp_path: Path) -> None:
    home = os.getpid()

    @dataclass(frozen=True)
    class OnlyHere(FileImage):
        """An image on the disk of this machine alone."""

        def read(self) -> bytes:
            if os.getpid() != home:
                raise FileNotFoundError(2, "No such file or directory")
            return FileImage.read(self)

    images = dataclasses.replace(photos, find=lambda key: OnlyHere(photos.find(key).path))  # type: ignore[attr-defined]
    with pytest.raises(Unfit, match=rf"it cannot read {images.samples[0].id}, which this machine can"):
        fill(noting_model(tmp_path / "notes"), images, tmp_path / "ray", at(cluster))
    assert stored(tmp_path / "ray") == {}


def test_a_node_that_lacks_the_images_is_left_out_and_stays_so(cluster: Any, photos: ImageList, tmp_path: Path) -> None:
    notes, poor = tmp_path / "notes", next(iter(cluster.worker_nodes)).node_id

    @dataclass(frozen=True)
    class NotOnOne(FileImage):
        """An image that one of the nodes lacks."""

        def read(self) -> bytes:
            if on_node() == poor:
                raise FileNotFoundError(2, "No such file or directory")
            return FileImage.read(self)

    def stall(node: str, notes: Path) -> None:
        if node != poor:
            wait_for((notes / "left out").exists)
            if once(notes, "killed"):
                die()  # so that another worker is placed, while the poor node has room

    def tell(text: str) -> None:
        if "is not used: it cannot read" in text:
            (notes / "left out").touch()

    images = dataclasses.replace(photos, find=lambda key: NotOnOne(photos.find(key).path))  # type: ignore[attr-defined]
    tally = fill(noting_model(notes, stall), images, tmp_path / "ray", at(cluster), tell=tell)
    assert tally.predicted == 5 * len(images.samples)
    assert tally.skipped_images == ()
    assert (notes / "killed").exists()
    fill(noting_model(tmp_path / "others"), photos, tmp_path / "here")
    assert stored(tmp_path / "ray") == stored(tmp_path / "here")


def test_a_model_that_cannot_be_sent_is_named(cluster: Any, photos: Dataset, tmp_path: Path) -> None:
    lock = threading.Lock()

    def forward(inputs: Any) -> Any:
        with lock:
            return inputs.mean(axis=(2, 3))

    model = sp.wrap_model(forward, name="locked", version="1", class_names=list("abc"), size=(16, 16), preprocess="unit")
    with pytest.raises(BadInput, match=r"locked cannot be sent to workers .*name it by a spec such as onnx:FILE"):
        fill(model, photos, tmp_path / "ray", at(cluster))


def test_an_error_of_the_model_is_raised_here(cluster: Any, photos: Dataset, tmp_path: Path) -> None:
    model = sp.wrap_model(
        lambda inputs: inputs.mean(axis=1), name="wrong", version="1", class_names=list("abc"), size=(16, 16)
    )
    with pytest.raises(BadInput, match=r"wrong should give 4 images \(images, classes\) scores"):
        fill(model, photos, tmp_path / "ray", at(cluster))


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("layout", ["imagenet-c", "cifar-c"])
def test_corrupted_files_and_arrays_are_those_written_here(
    cluster: Any, photos: ImageList, tmp_path: Path, layout: Any
) -> None:
    (tmp_path / "photos" / photos.samples[3].id).write_bytes(b"no picture")
    chosen = sp.CorruptionChoice(corruptions=("brightness", "contrast"))
    how: dict[str, Any] = {"corruptions": chosen, "pictures": sp.PictureSettings(edition="cifar-32"), "layout": layout}
    on_ray = sp.corrupt_dataset(photos, tmp_path / "ray", engine=at(cluster), **how)
    here = sp.corrupt_dataset(photos, tmp_path / "here", **how)
    assert (on_ray.written, on_ray.skipped_images) == (here.written, here.skipped_images)
    assert on_ray.written == 10 * (len(photos.samples) - 1)
    assert files_in(tmp_path / "ray") == files_in(tmp_path / "here")


def test_perturbation_sequences_are_those_written_here(cluster: Any, photos: ImageList, tmp_path: Path) -> None:
    how: dict[str, Any] = {
        "perturbations": sp.PerturbationChoice(perturbations=("tilt",)),
        "edition": "cifar-32",
        "limit": 4,
    }
    sp.perturb_dataset(photos, tmp_path / "ray", layout="cifar-p", engine=at(cluster), **how)
    sp.perturb_dataset(photos, tmp_path / "here", layout="cifar-p", **how)
    assert files_in(tmp_path / "ray") == files_in(tmp_path / "here")


def test_adversarial_filtration_chooses_the_same_images(
    cluster: Any, photos: ImageList, colour_model: Classifier, tmp_path: Path
) -> None:
    def confused(inputs: Any) -> Any:
        return colour_scores(inputs)[:, ::-1]

    model = sp.wrap_model(
        confused,
        name="confused",
        version="1",
        class_names=sorted(COLOURS),
        size=(16, 16),
        preprocess="squash,mean=0,std=1",
    )
    made = {
        where: sp.curate.adversarial(photos, tmp_path / where, [model], store=tmp_path / f"{where}-store", engine=engine)
        for where, engine in (("ray", at(cluster)), ("here", None))
    }
    chosen = {where: [sample.id for sample in one.filtered.choice.left] for where, one in made.items()}
    assert chosen["ray"] == chosen["here"] != []
    assert (tmp_path / "ray" / "images.csv").read_bytes() == (tmp_path / "here" / "images.csv").read_bytes()


PHOTOS = 200
REAL: dict[str, Any] = {
    "studies": sp.StudyChoice(
        ["corruption"], {"corruption": sp.CorruptionOptions(corruptions=("fog", "jpeg_compression"), severities=(3,))}
    ),
    "prediction": sp.PredictionSettings(quiet=True),
}


@pytest.fixture(scope="module")
def real_run(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ImageList, Path, Any]:
    """Photos, and what a run of a real network on them stores here and measures."""
    images = some_of(sp.open_dataset(str(real_data / "ilsvrc-sample-1000")), PHOTOS)
    store = tmp_path_factory.mktemp("here")
    return images, store, sp.run("lite:0", images, store=store, **REAL)


@pytest.mark.real
@pytest.mark.parametrize("event", ["nothing", "a node dies", "a worker dies", "a node joins"])
def test_a_real_network_gives_the_same_rows_whatever_happens(
    cluster: Any, real_run: tuple[ImageList, Path, Any], tmp_path: Path, event: str
) -> None:
    images, here, measured = real_run
    victim = add_node(cluster) if event == "a node dies" else None
    happened: list[Any] = []

    def happen() -> None:
        match event:
            case "a node dies":
                cluster.remove_node(victim, allow_graceful=False)
            case "a worker dies":
                os.kill(min(actors()), signal.SIGKILL)
            case "a node joins":
                happened.append(add_node(cluster))
        happened.append(event)

    class InTheMiddle(Silent):
        """Progress that does it when the store has a third of the rows."""

        def begin(self, what: str, total: int, done: int) -> None:
            self.left = total // 3

        def advance(self, images: int) -> None:
            self.left -= images
            if self.left <= 0 and not happened:
                happen()

    on_ray = sp.run("lite:0", images, store=tmp_path / "ray", engine=at(cluster), progress=InTheMiddle(), **REAL)
    assert happened[-1] == event
    if event == "a node joins":
        cluster.remove_node(happened[0])
    assert stored(tmp_path / "ray") == stored(here)
    assert values(on_ray) == values(measured)


def values(results: Any) -> list[tuple[str, float]]:
    return [(one.metric, one.value) for one in results.measurements]
