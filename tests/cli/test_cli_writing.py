"""The commands that write sets, as people use them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from command import Shiftproof
from forked_command import forking
from patience import wait_until

Draw = Callable[..., Path]


def test_a_missing_library_becomes_its_install_command(draw_photos: Draw, tmp_path: Path) -> None:
    (tmp_path / "cv2.py").write_text("raise ModuleNotFoundError('no cv2 here', name='cv2')")
    told = "needs: pip install 'shiftproof[corruptions]'"
    for asked in ("corrupt", "perturb"):
        said = subprocess.run(
            [sys.executable, "-m", "shiftproof", asked, str(draw_photos(1, name=asked)), "out", "--quiet"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (said.returncode, said.stderr) == (1, f"shiftproof: this command {told}\n")
    script = "import shiftproof as sp\ntry:\n sp.corrupt\nexcept Exception as error:\n print(type(error).__name__, error)"
    said = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == f"MissingExtra shiftproof.corrupt {told}\n"


def test_corrupt_writes_a_set_and_says_where(shiftproof: Shiftproof, draw_photos: Draw) -> None:
    asked = ["corrupt", draw_photos(2), "c", "--corruptions", "contrast,fog", "--severities", "1,3", "--edition", "tiny-64"]
    first = shiftproof(*asked)
    assert (first.code, first.out) == (0, "c\n")
    assert "24 pictures in" in first.err
    assert "24 pictures written, 0 images skipped" in first.err
    again = shiftproof(*asked)
    assert "0 pictures written, 24 were written before" in again.err
    said = shiftproof(*asked, "--json", "--quiet")
    assert json.loads(said.out) == {"destination": "c", "written": 0, "written_before": 24, "skipped_images": []}
    assert said.err == ""
    checked = shiftproof("check", "c")
    assert checked.out.splitlines() == [
        "c: 24 images, 24 labelled, 3 classes",
        "written by shiftproof 0.1.0 from photos: edition tiny-64, output jpeg85, seed 0",
    ]


def test_the_options_reach_the_pictures(shiftproof: Shiftproof, draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos(4)
    panes = tmp_path / "panes"
    panes.mkdir()
    (panes / "frost1.png").write_bytes((photos / "red" / "000.png").read_bytes())
    asked = ["corrupt", photos, "c", "--corruptions", "frost", "--severities", "2", "--limit", "3", "--seed", "7"]
    said = shiftproof(
        *asked, "--at", "image", "--scale-severity", "--encoding", "raw", "--frost-folder", panes, "--workers", "0"
    )
    assert said.code == 0, said.err
    written = sp.open_dataset("c")
    assert [sample.id for sample in written.samples] == [f"frost/2/{colour}/000.png" for colour in ("blue", "green", "red")]
    record = json.loads(Path("c/manifest.json").read_text())
    assert (record["seed"], record["scale_strengths"], record["picture"]) == (7, True, "image")
    source = written.source(written.samples[0])
    assert source.decode(source.read()).shape == (24, 32, 3)


def test_arrays_and_sequences_come_from_the_command_too(shiftproof: Shiftproof, draw_photos: Draw) -> None:
    photos = draw_photos(1)
    shiftproof("corrupt", photos, "c", "--corruptions", "contrast", "--edition", "cifar-32", "--layout", "cifar-c")
    assert np.load("c/contrast.npy").shape == (15, 32, 32, 3)
    asked = ["--perturbations", "scale,shot_noise", "--levels", "2", "--edition", "cifar-32", "--layout", "cifar-p"]
    said = shiftproof("perturb", photos, "p", *asked, "--limit", "2", "--json")
    assert json.loads(said.out)["written"] == 4
    assert np.load("p/scale.npy").shape == np.load("p/shot_noise_2.npy").shape == (2, 31, 32, 32, 3)
    videos = shiftproof("perturb", photos, "v", "--perturbations", "brightness", "--edition", "cifar-32", "--limit", "1")
    assert videos.code == 0
    assert "1 sequences written" in videos.err
    assert len(sp.open_dataset("v").samples) == 31


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["corrupt", "photos", "c", "--corruptions", "fgo"], "no corruption called 'fgo'; did you mean fog?"),
        (["corrupt", "photos", "c", "--severities", "0"], "severities should be some of 1 to 5"),
        (["corrupt", "photos", "c", "--edition", "imagenet"], "no edition called 'imagenet'"),
        (["corrupt", "photos", "c", "--at", "model-size"], "--at model-size needs a model, and none is run here"),
        (["corrupt", "photos", "c", "--frost-folder", "nowhere"], "no folder nowhere"),
        (["corrupt", "nowhere", "c"], "no such file or folder: nowhere"),
        (["corrupt", "photos", "photos", "--edition", "tiny-64"], "lies inside"),
        (["perturb", "photos", "p", "--perturbations", "titl"], "no perturbation called 'titl'; did you mean tilt?"),
        (["perturb", "photos", "p", "--levels", "4"], "levels should be some of 1 to 3"),
    ],
)
def test_slips_are_one_line(asked: list[str], says: str, shiftproof: Shiftproof, draw_photos: Draw) -> None:
    draw_photos(1)
    said = shiftproof(*asked)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("shiftproof: ")
    assert says in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("command", ["corrupt", "perturb"])
@pytest.mark.parametrize(
    ("destination", "says"),
    [
        ("taken", "taken: it is a file, not a folder"),
        ("taken/c", "cannot write taken/c: a file stands where a folder should be"),
        ("x" * 300, "File name too long"),
        ("foreign", "foreign holds manifest.json and no record of a dataset we wrote"),
    ],
)
def test_a_destination_that_is_taken_is_one_line(
    destination: str, says: str, command: str, shiftproof: Shiftproof, draw_photos: Draw
) -> None:
    draw_photos(1)
    Path("taken").write_text("mine")
    Path("foreign").mkdir()
    Path("foreign/manifest.json").write_text('{"layout": "imagenet-c", "shiftproof": "1", "source": []}')
    said = shiftproof(command, "photos", destination, "--edition", "tiny-64", "--quiet")
    assert (said.code, said.out) == (1, "")
    assert says in said.err
    assert said.err.count("\n") == 1
    assert Path("taken").read_text() == "mine"


def test_images_beyond_the_limit_are_skipped_and_files_outside_read_where_asked(
    shiftproof: Shiftproof, draw_photos: Draw
) -> None:
    photos = draw_photos(1)
    names = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.*"))
    Path("list").mkdir()
    Path("list/m.csv").write_text("".join(["path\n", *(f"../photos/{name}\n" for name in names)]))
    asked = ["corrupt", "list/m.csv", "c", "--corruptions", "contrast", "--severities", "1", "--edition", "tiny-64"]
    refused = shiftproof(*asked)
    assert refused.code == 1
    assert "say --allow-outside" in refused.err
    said = shiftproof(*asked, "--allow-outside", "--max-pixels", "10", "--json")
    aside = json.loads(said.out)["skipped_images"]
    assert len(aside) == len(names)
    assert "pixels, limit is 10; raise it with --max-pixels" in aside[0]["reason"]
    assert json.loads(shiftproof(*asked, "--allow-outside", "--json").out)["skipped_images"] == []


def test_unreadable_images_are_listed(shiftproof: Shiftproof, draw_photos: Draw) -> None:
    photos = draw_photos(1)
    (photos / "red" / "x.jpg").write_text("no image")
    asked = ["corrupt", photos, "c", "--corruptions", "contrast", "--severities", "1", "--edition", "tiny-64"]
    said = shiftproof(*asked)
    assert said.code == 0
    assert "skipped: red/x.jpg: not an image" in said.err
    assert "3 pictures written, 1 images skipped" in said.err
    aside = json.loads(shiftproof(*asked, "--json").out)["skipped_images"]
    assert [image["id"] for image in aside] == ["red/x.jpg"]


def test_ctrl_c_is_one_sentence_and_the_same_command_goes_on(draw_photos: Draw, tmp_path: Path) -> None:
    corrupt = ["corrupt", draw_photos(30), tmp_path / "c", "--edition", "tiny-64", "--quiet", "--json"]
    command = [*corrupt, "--corruptions", "contrast,fog", "--workers", "0"]
    with forking(tmp_path, ["shiftproof.writing.writer", "shiftproof.bench.job"]) as shiftproof:
        process = shiftproof.start(*command)
        wait_until(lambda: any((tmp_path / "c").rglob("*.JPEG")))
        process.kill(signal.SIGINT)
        stopped = process.wait()
        assert stopped.code == 130
        assert "the same command goes on from here" in stopped.err
        assert "Traceback" not in stopped.err
        again = json.loads(shiftproof.run(*command).out)
    assert again["written_before"] > 0
    assert again["written"] + again["written_before"] == 900
