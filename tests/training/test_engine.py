"""Training of networks: what is learned, what is frozen, what a killed training ends with, and what is told."""

from __future__ import annotations

import dataclasses
import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning_fabric", reason="lightning-fabric is not installed")

import shiftproof as sp  # noqa: E402
from shiftproof.datasets.image_list import ImageList  # noqa: E402
from shiftproof.errors import BadInput, StoreError  # noqa: E402
from shiftproof.files import write_whole  # noqa: E402
from shiftproof.models.preprocessing import ImagePreprocessing  # noqa: E402
from shiftproof.training.job import Job  # noqa: E402
from shiftproof.training.networks import checkpoints, course, engine  # noqa: E402
from shiftproof.training.networks.checkpoints import EpochRow  # noqa: E402
from shiftproof.training.networks.course import Reached, Tell, TrainedNetwork  # noqa: E402
from shiftproof.training.networks.engine import train_network  # noqa: E402
from shiftproof.training.networks.inputs import Inputs  # noqa: E402
from shiftproof.training.networks.schedule import PLATEAU_EPOCHS, Rates  # noqa: E402
from shiftproof.training.options import NetworkOptions  # noqa: E402
from shiftproof.training.recipe import ChosenRecipe, Recipe, Stage  # noqa: E402
from shiftproof.types import Sample  # noqa: E402
from training.small_jobs import SHAKEN, SmallJobs, noisy_colours  # noqa: E402


def alike(one: TrainedNetwork, other: TrainedNetwork) -> bool:
    """Whether two trainings ended with the same weights, bit for bit, and the same curves but for seconds."""
    curves = [[dataclasses.replace(row, seconds=0.0) for row in training.curves] for training in (one, other)]
    pairs = ((one.end, other.end), (one.start, other.start))
    same = all(np.array_equal(array, others[name]) for ours, others in pairs for name, array in ours.items())
    return same and one.end.keys() == other.end.keys() and curves[0] == curves[1]


def test_a_network_learns_and_says_how(small_jobs: SmallJobs) -> None:
    told: list[Reached | EpochRow] = []
    trained = train_network(small_jobs(epochs=12, optimizer="adamw", learning_rate=0.03), progress=told.append)
    assert len(trained.curves) == 12
    assert trained.curves[-1].loss < 0.6 * trained.curves[0].loss
    assert trained.score(trained.end) == trained.curves[-1].validation_accuracy > 0.8
    assert trained.score(trained.end) > trained.score(trained.start)
    assert trained.curves[0].rate > trained.curves[-1].rate > 0
    last, row = told[-2:]
    assert isinstance(last, Reached)
    assert (last.epoch, last.step, last.steps, last.images) == (12, 4, 4, 5)
    assert row == trained.curves[-1]


def test_the_seed_decides_the_weights(small_jobs: SmallJobs) -> None:
    first, again, other = (train_network(small_jobs((SHAKEN,), network="normed", seed=seed)) for seed in (0, 0, 1))
    assert alike(first, again)
    assert not alike(first, other)


def test_where_slurm_is_installed_or_a_task_of_it_runs_training_is_the_same(
    small_jobs: SmallJobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = train_network(small_jobs())
    write_whole(tmp_path / "bin" / "srun", b"#!/bin/sh\n")
    (tmp_path / "bin" / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert alike(train_network(small_jobs()), plain)  # a warning would be an error
    for name, value in {"SLURM_NTASKS": "4", "SLURM_PROCID": "3", "SLURM_JOB_NAME": "grid", "SLURM_JOB_ID": "7"}.items():
        monkeypatch.setenv(name, value)
    assert alike(train_network(small_jobs()), plain)


def test_batch_norms_of_a_short_training_end_with_the_figures_of_its_pictures(small_jobs: SmallJobs) -> None:
    """A momentum of 0.001, as networks have that were trained for weeks, would leave 98 % of what was there before."""
    job = small_jobs("baseline?padding=0", network="slow", epochs=5, learning_rate=1e-9)
    trained = train_network(job)
    files = [job.training.source(sample) for sample in job.training.samples]
    pictures = np.stack([file.decode(file.read()) for file in files])
    inputs = Inputs(trained.preprocessing, torch.device("cpu"))(pictures)
    weight, bias = (torch.from_numpy(trained.start[f"body.first.{name}"]) for name in ("weight", "bias"))
    expected = torch.nn.functional.conv2d(inputs, weight, bias, padding=1).mean(dim=(0, 2, 3)).numpy()
    found = trained.end["body.norm.running_mean"]
    assert np.abs(found - expected).max() < 0.2 * np.abs(expected).max()


@pytest.mark.parametrize(("recipe", "options"), [("lp-ft", {"epochs": 4}), ("baseline", {"batch_norms": "frozen"})])
def test_batch_norms_can_keep_their_statistics(small_jobs: SmallJobs, recipe: str, options: dict[str, Any]) -> None:
    trained = train_network(small_jobs(recipe, network="normed", **options))
    moved = {name for name, array in trained.end.items() if not np.array_equal(array, trained.start[name])}
    assert moved >= {"body.first.weight", "body.norm.weight"}
    assert not {name for name in moved if "running" in name}


class Killed(Exception):
    """Stands for the end of a process."""


def killed_at(step: int) -> Tell:
    def progress(now: Reached | EpochRow) -> None:
        if isinstance(now, Reached) and (now.epoch - 1) * now.steps + now.step == step:
            raise Killed

    return progress


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ((SHAKEN,), {}),
        ("confidence-branch", {"optimizer": "adamw", "learning_rate": 0.01}),
        ("adversarial?replays=2", {"clip_gradient": 1.0, "warmup": 0.5}),
        ("lp-ft+ema", {"patience": 1}),
        ("mixup", {"schedule": "plateau", "learning_rate": None}),
        ("lora+ema", {}),
    ],
)
def test_a_killed_training_goes_on_and_ends_with_the_same_weights(
    small_jobs: SmallJobs, recipe: Any, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "TOLD_SECONDS", 0.0)
    undisturbed = train_network(small_jobs(recipe, network="normed", **options))
    steps = 4 * len(undisturbed.curves)
    for seconds in (0.0, 1000.0):  # a checkpoint after every step, and one after every epoch
        monkeypatch.setattr(course, "CHECKPOINT_SECONDS", seconds)
        job = small_jobs(recipe, network="normed", **options)
        for step in (2, 5, steps - 1):
            with pytest.raises(Killed):
                train_network(job, progress=killed_at(step))
        assert alike(train_network(job), undisturbed)


def test_a_finished_training_is_not_done_again(small_jobs: SmallJobs) -> None:
    job = small_jobs("ema")
    first = train_network(job)

    def never(_: object) -> None:
        raise AssertionError

    assert alike(train_network(job, progress=never), first)


def test_a_full_disk_loses_no_checkpoint(small_jobs: SmallJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed, job = train_network(small_jobs()), small_jobs()
    written: list[Path] = []

    def full(path: Path, data: bytes) -> None:
        written.append(path)
        if len(written) == 2:
            raise StoreError(f"no space left for {path}")
        write_whole(path, data)

    monkeypatch.setattr(checkpoints, "write_whole", full)
    with pytest.raises(StoreError, match="no space left"):
        train_network(job)
    monkeypatch.undo()
    assert alike(train_network(job), undisturbed)


def test_another_training_in_the_folder_is_told(small_jobs: SmallJobs) -> None:
    job = small_jobs()
    train_network(job)
    with pytest.raises(BadInput, match="holds an unfinished training of something else"):
        train_network(small_jobs(learning_rate=0.2, folder=job.folder))


def test_a_damaged_checkpoint_is_told(small_jobs: SmallJobs) -> None:
    job = small_jobs(epochs=1)
    train_network(job)
    path = job.folder / "checkpoints" / course.CHECKPOINT
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(StoreError, match="is damaged; remove it"):
        train_network(job)


def moved(trained: TrainedNetwork) -> set[str]:
    """Tensors that training changed."""
    return {name for name, array in trained.end.items() if not np.array_equal(array, trained.start[name])}


def test_frozen_layers_stay_with_their_batch_norms(small_jobs: SmallJobs) -> None:
    trained = train_network(small_jobs(network="normed", freeze=("first", "norm")))
    assert moved(trained) == {"body.second.weight", "body.second.bias", "head.weight", "head.bias"}
    with pytest.raises(BadInput, match="no layer begins with 'third'; there are first, norm, second"):
        train_network(small_jobs(freeze=("third",)))
    with pytest.raises(BadInput, match="there is nothing to train"):
        train_network(small_jobs(freeze=("body", "head")))


def test_a_stage_of_the_head_leaves_the_body_alone(small_jobs: SmallJobs) -> None:
    probe = Recipe("Probe", "The head alone.", stages=(Stage(1.0, "head"),))
    trained = train_network(small_jobs((ChosenRecipe("probe", probe, {}),), network="normed"))
    assert moved(trained) == {"head.weight", "head.bias"}
    both = train_network(small_jobs("lp-ft", network="normed", schedule="step"))
    assert "body.first.weight" in moved(both)
    assert both.curves[1].rate < 0.11 * both.curves[0].rate
    # it starts, for WiSE-FT and the like, where the probe ended
    assert not np.array_equal(both.start["head.weight"], trained.start["head.weight"])
    assert np.array_equal(both.start["body.first.weight"], trained.start["body.first.weight"])


def test_averaged_weights_are_the_running_mean_of_those_of_every_step(small_jobs: SmallJobs) -> None:
    first = train_network(small_jobs(epochs=1, batch_size=12))  # two steps
    halfway = train_network(small_jobs(epochs=1, batch_size=24))
    assert len(halfway.curves) == 1
    averaged = train_network(small_jobs("ema?decay=0.0", epochs=1, batch_size=12))
    assert alike(averaged, first)  # nothing is remembered
    kept = train_network(small_jobs("ema", epochs=1, batch_size=12))
    # of the second step (1 + 1) / (10 + 1) is the first's: between the two, nearer to the last
    moves = kept.end["head.weight"] - first.end["head.weight"]
    assert 0 < np.abs(moves).max() < np.abs(first.end["head.weight"] - first.start["head.weight"]).max()


def test_early_stopping_keeps_the_best_weights(small_jobs: SmallJobs) -> None:
    trained = train_network(small_jobs(epochs=20, patience=2, optimizer="adamw", learning_rate=0.02, schedule="step"))
    accuracies = [row.validation_accuracy for row in trained.curves]
    assert len(accuracies) < 20
    assert trained.score(trained.end) == max(accuracies)
    best = accuracies.index(max(accuracies))
    assert len(accuracies) == best + 3


@pytest.mark.parametrize("schedule", ["cosine", "step"])
def test_rates_are_those_of_torch(schedule: Any) -> None:
    epochs, steps = 8, 5
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    torchs: Any = (
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
        if schedule == "cosine"
        else torch.optim.lr_scheduler.MultiStepLR(optimizer, [4 * steps, 6 * steps])
    )
    rates = Rates(NetworkOptions(schedule=schedule), steps, epochs)
    for step in range(epochs * steps):
        assert rates.at(step, []) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        torchs.step()


def test_plateaus_are_those_of_torch() -> None:
    losses = np.random.default_rng(0).random(60).tolist()
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    # torch reduces when more than so many epochs were waited
    torchs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=PLATEAU_EPOCHS - 1, eps=0.0)
    rates = Rates(NetworkOptions(schedule="plateau"), 1, 60)
    for epoch, loss in enumerate(losses):
        assert rates.at(epoch, losses[:epoch]) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        torchs.step(loss)


def test_warm_up_rises_evenly() -> None:
    rates = Rates(NetworkOptions(warmup=1.0, schedule="step"), 4, 10)
    assert [rates.at(step, []) for step in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_the_rate_that_is_searched_leads_to_the_lowest_loss_of_those_tried(
    small_jobs: SmallJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RATES", {"sgd": (1e-9, 0.05, 1e12)})
    trained = train_network(small_jobs(learning_rate=None, epochs=1))
    assert trained.options["learning_rate"] == 0.05
    monkeypatch.setattr(engine, "RATES", {"sgd": (1e30, 1e35)})
    with pytest.raises(BadInput, match="no learning rate of the search leads to a finite loss"):
        train_network(small_jobs(learning_rate=None))


def test_a_loss_that_is_no_number_stops_training(small_jobs: SmallJobs) -> None:
    with pytest.raises(BadInput, match=r"the loss became (NaN|infinite) in epoch 1, by step \d.*--learning-rate"):
        train_network(small_jobs(learning_rate=1e30))


def test_gradients_are_clipped(small_jobs: SmallJobs) -> None:
    # one step of plain SGD moves all weights by no more than the rate times the norm
    trained = train_network(small_jobs(epochs=1, batch_size=24, momentum=0.0, weight_decay=0.0, clip_gradient=0.01))
    total = math.sqrt(sum(float(((trained.end[name] - trained.start[name]) ** 2).sum()) for name in moved(trained)))
    assert total == pytest.approx(0.1 * 0.01, rel=1e-3)


def test_outliers_are_needed_where_a_recipe_says_so(small_jobs: SmallJobs, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="outlier-exposure needs images of none of the classes"):
        train_network(small_jobs("outlier-exposure"))
    outliers = noisy_colours(tmp_path / "outliers", 3, 7)
    trained = train_network(small_jobs("reject-class", outliers=outliers))
    assert "branches.reject.weight" in moved(trained)


def test_one_class_is_not_enough(small_jobs: SmallJobs) -> None:
    images = small_jobs.training
    red = dataclasses.replace(images, samples=[sample for sample in images.samples if sample.labels == (2,)])
    with pytest.raises(BadInput, match="are of one class only"):
        train_network(small_jobs(training=red))


def test_a_label_that_the_network_lacks_is_told(small_jobs: SmallJobs) -> None:
    images = small_jobs.training
    wrong = dataclasses.replace(images, samples=[*images.samples[:-1], Sample(images.samples[-1].id, (3,))])
    with pytest.raises(BadInput, match="has label 3, and the network is trained on 3 classes, 0 to 2"):
        train_network(small_jobs(training=wrong))


def test_an_empty_dataset_is_told(small_jobs: SmallJobs) -> None:
    with pytest.raises(BadInput, match="there are no images in training"):
        train_network(small_jobs(training=dataclasses.replace(small_jobs.training, samples=[])))


def test_an_unreadable_image_is_left_out_and_told(small_jobs: SmallJobs, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(small_jobs.folder / "training", folder)
    (folder / "red" / "000.png").write_bytes(b"no picture")
    trained = train_network(small_jobs(training=_moved(small_jobs.training, folder)))
    assert any("1 images could not be read" in note and "red/000.png" in note for note in trained.notes)


def _moved(images: ImageList, folder: Path) -> ImageList:
    from shiftproof.datasets.image_list import FilesBelow

    return dataclasses.replace(images, find=FilesBelow(str(folder)), location=str(folder))


def test_weighed_images_are_shown_as_often_as_they_count(small_jobs: SmallJobs) -> None:
    def red_alone(samples: Any, **_: Any) -> Any:
        return np.array([3.0 * (sample.labels == (2,)) for sample in samples])

    recipe = ChosenRecipe("red", Recipe("Red", "Red alone.", weigh=red_alone), {})
    trained = train_network(small_jobs((recipe,), epochs=8))
    assert trained.curves[-1].accuracy == 1.0
    assert trained.curves[-1].validation_accuracy == pytest.approx(1 / 3)  # it has seen nothing but red


@pytest.mark.parametrize("text", ["imagenet", "caffe", "half", "lite", "unit,channels=grey,mean=0.5,std=0.2"])
def test_inputs_are_those_of_the_models_own_preprocessing(text: str) -> None:
    preprocessing: ImagePreprocessing = sp.models.parse_preprocessing(f"{text},size=12")
    pictures = np.random.default_rng(0).integers(0, 256, (3, 12, 12, 3), dtype=np.uint8)
    expected = np.stack([preprocessing.from_picture(picture) for picture in pictures])
    inputs = Inputs(preprocessing, torch.device("cpu"))
    assert inputs(pictures).numpy() == pytest.approx(expected, abs=1e-5)
    low, high = preprocessing.bounds
    assert float(torch.minimum(inputs.black, inputs.white).min()) == pytest.approx(low, abs=1e-4)
    assert float(torch.maximum(inputs.black, inputs.white).max()) == pytest.approx(high, abs=1e-4)


def test_devices_and_precisions_that_are_not_there_are_told(small_jobs: SmallJobs) -> None:
    def with_settings(**settings: Any) -> Job:
        job = small_jobs()
        return dataclasses.replace(job, model_options=sp.ModelSettings(**settings))

    with pytest.raises(BadInput, match="torch cannot train on device 'abacus'"):
        train_network(with_settings(device="abacus"))
    with pytest.raises(BadInput, match="precision should be one of float32, bfloat16, float16"):
        train_network(with_settings(precision="int4"))
