"""URLs in the place of paths: what is refused, what is cached, and that a server that goes away costs nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import shiftproof as sp
from command import Shiftproof
from shiftproof import places, remote
from shiftproof.errors import BadInput, OutOfReach, StoreWarning
from shiftproof.files import read_json, write_whole
from shiftproof.runs.rows import Rows, StoredRun
from shiftproof.runs.store import Store
from shiftproof.types import Classifier
from storage.conftest import Mortal, upload

Draw = Callable[..., Path]
HUSH = "hush5ecret"

SECRET_URLS = (
    f"s3://AKIAXYZ:{HUSH}@bucket/photos",
    f"https://me:{HUSH}@example.org/list.csv",
    f"https://{HUSH}@example.org/list.csv",
    f"https://example.org/list.csv?X-Amz-Credential=a&X-Amz-Signature={HUSH}",
    f"https://account.blob.core.windows.net/photos/list.csv?sv=2024&sig={HUSH}",
    f"https://example.org/list.csv?access_token={HUSH}",
    f"abfs://photos:{HUSH}@account.dfs.core.windows.net/set",
    f"memory://set/list.csv?labels=https://me:{HUSH}@example.org/labels.json",
    f"memory://set/list.csv?labels=https%3A%2F%2Fme:{HUSH}@example.org/labels.json",
    f"tar:s3://k:{HUSH}@bucket/val.tar",
)


@pytest.mark.parametrize("url", SECRET_URLS)
def test_a_url_with_a_secret_is_refused_without_repeating_it(url: str, shiftproof: Shiftproof, tmp_path: Path) -> None:
    for open_it in (sp.open_dataset, Store, places.as_path, lambda one: sp.run("lite:0", one, store=tmp_path / "runs")):
        with pytest.raises(BadInput, match=r"holds .* keep it out of the URL") as refused:
            open_it(url)
        assert HUSH not in str(refused.value)
    said = shiftproof("plan", "lite:0", url, "--store", "runs")
    assert said.code == 1
    assert HUSH not in said.out + said.err
    assert "keep it out of the URL" in said.err


def test_a_secret_in_a_table_or_an_output_is_refused_without_repeating_it(tmp_path: Path, draw_photos: Draw) -> None:
    (tmp_path / "list.csv").write_text(f"path,label\nhttps://me:{HUSH}@example.org/a.png,cat\n")
    with pytest.raises(BadInput, match="keep it out of the URL") as refused:
        sp.open_dataset(tmp_path / "list.csv", allow_outside=True)
    assert HUSH not in str(refused.value)
    with pytest.raises(BadInput, match="keep it out") as refused:
        sp.open_dataset(draw_photos(1), labels=f"s3://a:{HUSH}@bucket/labels.json")
    assert HUSH not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["s3://bucket/photos", "abfs://photos@account.dfs.core.windows.net/set", "s3://b/a@b:c/x?y=1"]
)
def test_a_url_without_a_secret_is_taken(url: str) -> None:
    places.check_url(url)


def test_a_path_that_lost_a_slash_of_a_url_is_told_so() -> None:
    with pytest.raises(BadInput, match="a Path cannot hold a URL: s3:// lost a slash"):
        sp.open_dataset(Path("s3://bucket/photos"))


def test_two_urls_in_one_are_refused() -> None:
    with pytest.raises(BadInput, match="without ::"):
        sp.open_dataset("https://a.org/x::s3://bucket/photos")


def test_a_missing_driver_is_one_sentence_that_names_the_extra() -> None:
    """In a process that cannot import s3fs, as where it is not installed."""
    code = (
        "import sys; sys.modules['s3fs'] = None\n"
        "import shiftproof as sp, shiftproof.errors\n"
        "try: sp.open_dataset('s3://bucket/photos')\n"
        "except sp.errors.MissingExtra as told: print(told)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "reading s3:// URLs needs: pip install 'shiftproof[s3]'\n"


def test_an_unknown_protocol_is_one_sentence() -> None:
    with pytest.raises(BadInput, match="no driver is known for nowhere:// URLs"):
        sp.open_dataset("nowhere://bucket/photos")


def test_fsspec_is_not_imported_for_paths(draw_photos: Draw) -> None:
    code = (
        "import sys, shiftproof as sp\n"
        f"data = sp.open_dataset({str(draw_photos(1))!r})\n"
        "data.source(data.samples[0]).read()\n"
        "sp.Store('runs').models()\n"
        "print({'fsspec', 'shiftproof.remote'} & set(sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_what_is_kept_on_this_machine_alone_is_not_written_to_a_url(draw_photos: Draw, shiftproof: Shiftproof) -> None:
    said = shiftproof("corrupt", draw_photos(1), "memory://out", "--corruptions", "brightness")
    assert said.code == 1
    assert "a dataset lies in a folder of this machine, not at a URL such as memory://out" in said.err


def test_images_that_a_table_names_by_url_need_consent_unless_they_lie_below_it(bucket: str, draw_photos: Draw) -> None:
    photos = draw_photos(1)
    upload(photos, f"{bucket}/photos")
    remote.write(f"{bucket}/list.csv", f"path,label\n{bucket}/photos/red/000.png,red\nphotos/blue/000.png,blue\n".encode())
    remote.write(f"{bucket}/lists/list.csv", f"path,label\n{bucket}/photos/red/000.png,red\n".encode())
    inside = sp.open_dataset(f"{bucket}/list.csv")
    assert inside.source(inside.samples[0]).read() == (photos / "red" / "000.png").read_bytes()
    with pytest.raises(BadInput, match="lies outside"):
        sp.open_dataset(f"{bucket}/lists/list.csv")
    consented = sp.open_dataset(f"{bucket}/lists/list.csv", allow_outside=True)
    assert consented.source(consented.samples[0]).read() == (photos / "red" / "000.png").read_bytes()
    remote.write(f"{bucket}/list.csv", f"path,label\n{bucket}/../other/a.png,red\n".encode())
    with pytest.raises(BadInput, match="lies outside"):
        sp.open_dataset(f"{bucket}/list.csv")


# the cache


def cached(own_files: Path) -> list[Path]:
    return sorted(path for path in own_files.rglob("*") if path.is_file())


def test_a_file_is_fetched_once_and_again_where_it_changed(mortal: type[Mortal]) -> None:
    remote.write("mortal://b/a.png", b"first")
    assert remote.read("mortal://b/a.png") == b"first"
    version = remote.known("mortal://b/a.png").version
    before = mortal.asked
    assert remote.read("mortal://b/a.png", version) == b"first"
    assert mortal.asked == before
    remote.write("mortal://b/a.png", b"second")
    assert remote.read("mortal://b/a.png") == b"second"


def test_a_damaged_file_of_the_cache_is_fetched_again(mortal: type[Mortal], own_files: Path) -> None:
    remote.write("mortal://b/a.png", b"pixels")
    assert remote.read("mortal://b/a.png") == b"pixels"
    (only,) = cached(own_files)
    only.write_bytes(only.read_bytes()[:-1] + b"?")
    assert remote.read("mortal://b/a.png") == b"pixels"


def test_the_cache_keeps_to_its_size_and_drops_what_was_not_used_for_longest(
    mortal: type[Mortal], own_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE_GB", "1e-5")  # ten thousand bytes
    for number in range(9):
        remote.write(f"mortal://b/{number}", bytes([number]) * 1000)
        remote.read(f"mortal://b/{number}")
        for age, path in enumerate(sorted(cached(own_files), key=lambda path: path.stat().st_mtime_ns)):
            os.utime(path, ns=(age, age))  # so that no two are of the same time
    remote.read("mortal://b/0", remote.known("mortal://b/0").version)  # used again, so others go before it
    monkeypatch.setattr(remote, "_added", None)
    remote.write("mortal://b/9", bytes(1500))
    remote.read("mortal://b/9")
    held = {path.read_bytes()[16] for path in cached(own_files)}
    assert sum(path.stat().st_size for path in cached(own_files)) <= 10_000 * 0.9
    assert held == {0, 3, 4, 5, 6, 7, 8}


def test_a_cache_of_no_size_holds_nothing(
    mortal: type[Mortal], own_files: Path, monkeypatch: pytest.MonkeyPatch, draw_photos: Draw, colour_model: Classifier
) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE_GB", "0")
    upload(draw_photos(1), "mortal://b/photos")
    assert len(sp.predict(colour_model, "mortal://b/photos", store="mortal://b/runs", workers=0)) == 3
    assert cached(own_files) == []
    monkeypatch.setenv("SHIFTPROOF_CACHE_GB", "much")
    with pytest.raises(BadInput, match="SHIFTPROOF_CACHE_GB should be a number"):
        remote.read("mortal://b/photos/red/000.png")


# the store


def chunks(url: str) -> list[str]:
    return remote.files_like(f"{url}/rows/*/*.safetensors")


def test_a_store_at_a_url_holds_the_same_rows(
    bucket: str, tmp_path: Path, draw_photos: Draw, colour_model: Classifier
) -> None:
    photos = draw_photos(3)
    upload(photos, f"{bucket}/photos")
    fog = sp.Condition("brightness", 2)
    keeps: tuple[Literal["top5", "features"], ...] = ("top5", "features")
    for condition in (sp.Condition("clean"), fog):
        for keep in keeps:
            one = partial(sp.predict, colour_model, condition=condition, keep=keep, workers=0)
            here, away = one(photos, store=tmp_path / "runs"), one(f"{bucket}/photos", store=f"{bucket}/runs")
            assert away.ids == here.ids
            for name in ("labels", "logits", "features"):
                assert np.array_equal(getattr(here, name), getattr(away, name))
    assert {path.rpartition("/")[0] for path in chunks(f"{bucket}/runs")} == {
        f"{bucket}/runs/rows/{folder.name}" for folder in (tmp_path / "runs" / "rows").iterdir()
    }
    assert not remote.exists(f"{bucket}/runs/digests.sqlite")


def test_nothing_is_asked_of_the_model_twice(bucket: str, draw_photos: Draw, colour_model: Classifier) -> None:
    upload(draw_photos(2), f"{bucket}/photos")
    sp.predict(colour_model, f"{bucket}/photos", store=f"{bucket}/runs", workers=0)
    before = chunks(f"{bucket}/runs")
    upload(draw_photos(1, name="more") / "red", f"{bucket}/photos/red/more")
    assert len(sp.predict(colour_model, f"{bucket}/photos", store=f"{bucket}/runs", workers=0)) == 7
    (new,) = set(chunks(f"{bucket}/runs")) - set(before)
    assert set(before) < set(chunks(f"{bucket}/runs"))
    assert [key for key, _ in StoredRun(places.as_path(new).parent, {}).contents().rows][-1] == "red/more/000.png"


def _predict_all(model: Classifier, conditions: Sequence[sp.Condition]) -> None:
    for condition in conditions:
        sp.predict(model, "mortal://b/photos", store="mortal://b/runs", condition=condition, workers=0)


@pytest.mark.parametrize("puts", range(4))
def test_a_server_that_goes_away_stops_the_run_and_nothing_is_lost(
    puts: int, mortal: type[Mortal], tmp_path: Path, draw_photos: Draw, colour_model: Classifier
) -> None:
    photos = draw_photos(2)
    upload(photos, "mortal://b/photos")
    conditions = [sp.Condition("brightness", severity) for severity in range(1, 5)]
    mortal.puts_left = puts
    with pytest.raises(OutOfReach, match=r"^mortal://b/.* cannot be reached: connection reset") as told:
        _predict_all(colour_model, conditions)
    assert "hush" not in str(told.value)
    mortal.puts_left = None
    kept = chunks("mortal://b/runs")
    assert len(kept) == puts
    for condition in conditions:
        here = sp.predict(colour_model, photos, store=tmp_path / "runs", condition=condition)
        away = sp.predict(colour_model, "mortal://b/photos", store="mortal://b/runs", condition=condition, workers=0)
        assert (away.ids, away.skipped_images) == (here.ids, ())
        assert np.array_equal(away.top5.scores, here.top5.scores)
    assert set(kept) < set(chunks("mortal://b/runs"))
    assert len(chunks("mortal://b/runs")) == len(conditions)


def test_images_are_not_skipped_because_their_server_is_away(
    mortal: type[Mortal], tmp_path: Path, draw_photos: Draw, colour_model: Classifier
) -> None:
    upload(draw_photos(2), "mortal://b/photos")
    images = sp.open_dataset("mortal://b/photos")
    mortal.puts_left = 0
    with pytest.raises(OutOfReach):
        sp.predict(colour_model, images, store=tmp_path / "runs", workers=0)
    mortal.puts_left = None
    remote.remove("mortal://b/photos/red/000.png")
    found = sp.predict(colour_model, images, store=tmp_path / "runs", workers=0)
    assert [(one.id, one.reason) for one in found.skipped_images] == [("red/000.png", "cannot be read")]


def test_a_damaged_file_of_rows_is_quarantined_there_and_made_again(
    bucket: str, draw_photos: Draw, colour_model: Classifier
) -> None:
    upload(draw_photos(2), f"{bucket}/photos")
    first = sp.predict(colour_model, f"{bucket}/photos", store=f"{bucket}/runs", workers=0)
    (path,) = chunks(f"{bucket}/runs")
    whole = remote.read(path)
    for broken in (whole[:-1] + b"?", whole[:50], b""):
        remote.write(path, broken)
        with pytest.warns(StoreWarning, match="is damaged .* quarantined as .*damaged"):
            again = sp.predict(colour_model, f"{bucket}/photos", store=f"{bucket}/runs", workers=0)
        assert np.array_equal(again.top5.scores, first.top5.scores)
        (path,) = chunks(f"{bucket}/runs")
    assert len(remote.files_like(f"{bucket}/runs/rows/*/*.damaged")) == 3


def test_writers_join_their_own_files_and_leave_those_of_others(bucket: str) -> None:
    """Without locks: a file goes only when its own writer has put its rows into another."""

    def rows(*ids: str) -> Rows:
        arrays = {"top5_classes": np.zeros((len(ids), 3), np.int32), "top5_scores": np.ones((len(ids), 3), np.float32)}
        return Rows(ids, ["0" * 32] * len(ids), {**arrays, "log_total": np.ones(len(ids), np.float32)})

    folder = places.as_path(f"{bucket}/runs/rows/clean-1")
    first, second = StoredRun(folder, {}), StoredRun(folder, {})
    for writer, key in ((first, "a"), (second, "b"), (first, "c"), (second, "a")):
        writer.append(rows(key), "top5")
    first.seal()
    assert len(chunks(f"{bucket}/runs")) == 3
    second.seal()
    assert len(chunks(f"{bucket}/runs")) == 2
    assert sorted(key for key, _ in first.contents().rows) == ["a", "b", "c"]


def test_models_are_renamed_forgotten_merged_and_checked_at_a_url(
    bucket: str, tmp_path: Path, draw_photos: Draw, colour_model: Classifier
) -> None:
    photos = draw_photos(2)
    store, here = Store(f"{bucket}/runs"), Store(tmp_path / "runs")
    sp.predict(colour_model, photos, store=here, workers=0)
    assert sp.merge_stores(store.root, [here.root])[str(here.root)].new_files == 3
    assert sp.merge_stores(store.root, [here.root])[str(here.root)].new_files == 0
    sp.rename_model("colours", "hues", store)
    assert [model.ref.name for model in store.models()] == ["hues"]
    assert [(found.rows, found.damaged) for found in store.check()] == [(0, ()), (6, ())]
    back = Store(tmp_path / "back")
    back.absorb(store)
    first, second = (sp.predict(colour_model, photos, store=one).top5.scores for one in (here, back))
    assert np.array_equal(first, second)
    store.forget([store.models()[0].ref.fingerprint])
    assert store.models() == []
    assert chunks(f"{bucket}/runs") == []


def test_a_decision_is_taken_by_one_of_two_processes(bucket: str) -> None:
    remote.write(f"{bucket}/changes.json", b"{}", new=True)
    with pytest.raises(FileExistsError):
        remote.write(f"{bucket}/changes.json", b"{}", new=True)


def test_a_whole_run_and_its_report_at_a_url(bucket: str, tmp_path: Path, draw_photos: Draw, shiftproof: Shiftproof) -> None:
    from toys import save_colour_network

    photos = draw_photos(3)
    save_colour_network(tmp_path / "colours.onnx")
    upload(photos, f"{bucket}/photos")
    model = f"onnx:{tmp_path / 'colours.onnx'}"
    about = ("--studies", "accuracy", "--preprocess", "squash,mean=0,std=1", "--workers", 0, "--json")
    here = shiftproof("run", model, photos, *about, "--store", "runs", "-o", "report.html")
    away = shiftproof("run", model, f"{bucket}/photos", *about, "--store", f"{bucket}/runs", "-o", f"{bucket}/report.html")
    assert (here.code, away.code) == (0, 0), away.err
    report = remote.read(f"{bucket}/report.html")
    assert abs(len(report) - (tmp_path / "report.html").stat().st_size) < 5000
    assert report.startswith(b"<!doctype html>")
    plain = read_json(f"{bucket}/runs/{remote.files_like(f'{bucket}/runs/rows/*/run.json')[0].partition('/runs/')[2]}")
    assert plain["condition"]


def test_a_report_is_not_written_into_a_bucket_that_refuses(mortal: type[Mortal]) -> None:
    mortal.puts_left = 0
    with pytest.raises(OutOfReach):
        write_whole(places.as_path("mortal://b/report.html"), b"text")
