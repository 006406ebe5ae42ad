"""Real photos and a real network with data, store and report in a bucket of an S3 server on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from command import Shiftproof
from shiftproof import remote
from shiftproof.errors import BadInput, OutOfReach
from shiftproof.runs.rows import StoredRun
from shiftproof.runs.store import Store
from storage.conftest import upload

pytest.importorskip("s3fs")
pytest.importorskip("moto.server")
pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

WNIDS = ("n01443537", "n01484850", "n02007558")
CORRUPTION = ("--studies", "corruption", "--corruptions", "brightness,contrast", "--severities", "1,5", "--workers", 1)


class Server:
    """An S3 server on the loopback address, whose buckets outlive it; it can go away after a number of chunks."""

    def __init__(self) -> None:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        self._app = DomainDispatcherApplication(create_backend_app)
        self.chunks_left: int | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):  # type: ignore[misc]
            def log(self, *_: Any) -> None:
                """Nothing."""

        self._server = make_server("127.0.0.1", self.port, self._answer, threaded=True, request_handler=Quiet)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        if self.chunks_left == 0:
            # as a server that dies: the connection breaks, and no answer comes
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return []
        if self.chunks_left and environ["REQUEST_METHOD"] == "PUT" and environ["PATH_INFO"].endswith(".safetensors"):
            self.chunks_left -= 1
        return self._app(environ, respond)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with pytest.MonkeyPatch.context() as patch:
        found = Server()
        settings = {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "hush5ecret", "DEFAULT_REGION": "us-east-1"}
        settings |= {"ENDPOINT_URL": f"http://127.0.0.1:{found.port}", "MAX_ATTEMPTS": "1", "EC2_METADATA_DISABLED": "true"}
        settings |= {"CONFIG_FILE": os.devnull, "SHARED_CREDENTIALS_FILE": os.devnull}
        for name, value in settings.items():
            patch.setenv(f"AWS_{name}", value)
        patch.setenv("SHIFTPROOF_CACHE", str(tmp_path_factory.mktemp("cache")))
        with remote._asking("s3://photos") as (driver, _):
            driver.mkdir("photos")
        yield found
        found.stop()


@pytest.fixture(scope="module")
def photos(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three photos in class folders."""
    root = tmp_path_factory.mktemp("photos")
    for wnid in WNIDS:
        (found,) = (real_data / "ilsvrc-sample-1000").glob(f"{wnid}_*")
        (root / wnid).mkdir()
        shutil.copy(found, root / wnid / "a.jpg")
    return root


@pytest.fixture(scope="module")
def url(server: Server, photos: Path) -> str:
    upload(photos, "s3://photos/set")
    return "s3://photos/set"


def rows_of(store: Store) -> dict[tuple[str, str, str], bytes]:
    """Every array of every row, by run, image and name."""
    found: dict[tuple[str, str, str], bytes] = {}
    for folder, _ in store.folders_of_models():
        run = StoredRun(folder, {})
        pairs = sorted(run.contents().rows)
        arrays = run.load(pairs)
        for name, array in arrays.items():
            found |= {(folder.name, key, name): row.tobytes() for (key, _), row in zip(pairs, array, strict=True)}
    return found


@pytest.fixture(scope="module")
def local_rows(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], bytes]:
    store = tmp_path_factory.mktemp("local") / "runs"
    options = sp.CorruptionOptions(corruptions=("brightness", "contrast"), severities=(1, 5))
    sp.run("lite:0", photos, studies={"corruption": options}, store=store)
    return rows_of(Store(store))


def test_a_run_in_a_bucket_has_the_rows_of_one_on_disk_and_the_server_may_die_on_the_way(
    server: Server, url: str, local_rows: dict[tuple[str, str, str], bytes], shiftproof: Shiftproof
) -> None:
    about = ("run", "lite:0", url, *CORRUPTION, "--store", "s3://photos/runs", "-o", "s3://photos/report.html")
    server.chunks_left = 2
    said = shiftproof(*about)
    assert said.code == 1
    assert "cannot be reached" in said.err
    assert "hush5ecret" not in said.out + said.err
    server.chunks_left = None
    kept = set(remote.files_like("s3://photos/runs/rows/*/*.safetensors"))
    assert len(kept) == 2
    again = shiftproof(*about)
    assert again.code == 0, again.err
    assert kept < set(remote.files_like("s3://photos/runs/rows/*/*.safetensors"))
    assert rows_of(Store("s3://photos/runs")) == local_rows
    report = remote.read("s3://photos/report.html")
    assert report.startswith(b"<!doctype html>")
    stored = b"".join(map(remote.read, remote.files_like("s3://photos/runs/*/*/*.json")))
    assert b"hush5ecret" not in report + stored


def test_worker_processes_read_from_the_bucket(server: Server, url: str, photos: Path, tmp_path: Path) -> None:
    away = sp.predict("lite:0", url, store=tmp_path / "away", workers=2)
    here = sp.predict("lite:0", photos, store=tmp_path / "here", workers=2)
    assert isinstance(away, sp.types.Predictions)
    assert isinstance(here, sp.types.Predictions)
    assert np.array_equal(away.top5.scores, here.top5.scores)
    assert away.ids == here.ids


def test_a_server_that_is_not_there_is_told_in_a_sentence(server: Server, url: str, shiftproof: Shiftproof) -> None:
    server.stop()
    try:
        said = shiftproof("predict", "lite:0", url, "--store", "s3://photos/runs")
    finally:
        server.start()
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert f"{url} cannot be reached: Could not connect to the endpoint URL" in said.err
    assert "hush5ecret" not in said.err


def test_a_bucket_that_is_not_there_is_told_in_a_sentence(server: Server, photos: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file or folder: s3://nowhere/set"):
        sp.open_dataset("s3://nowhere/set")
    with pytest.raises(OutOfReach, match="no such bucket; make it first"):
        sp.predict("lite:0", photos, store="s3://nowhere/runs", workers=1)


def test_missing_credentials_are_told_in_a_sentence(server: Server, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with remote._asking(url) as (driver, _):
        type(driver).clear_instance_cache()
    try:
        with pytest.raises(OutOfReach, match="Unable to locate credentials"):
            sp.open_dataset(url)
    finally:
        type(driver).clear_instance_cache()


def test_one_of_two_decisions_is_taken(server: Server) -> None:
    remote.write("s3://photos/changes.json", b"{}", new=True)
    with pytest.raises(FileExistsError):
        remote.write("s3://photos/changes.json", b"{}", new=True)


def test_shards_are_read_in_part(server: Server, photos: Path, tmp_path: Path) -> None:
    import tarfile

    with tarfile.open(tmp_path / "val-0.tar", "w") as archive:
        for number, path in enumerate(sorted(photos.rglob("*.jpg"))):
            archive.add(path, f"{number:04}.jpg")
            (tmp_path / "label").write_text(str(number))
            archive.add(tmp_path / "label", f"{number:04}.cls")
    upload(tmp_path, "s3://photos/shards")
    images = sp.open_dataset("s3://photos/shards/val-{0..0}.tar")
    assert [sample.labels for sample in images.samples] == [(0,), (1,), (2,)]
    for sample, path in zip(images.samples, sorted(photos.rglob("*.jpg")), strict=True):
        assert images.source(sample).read() == path.read_bytes()
