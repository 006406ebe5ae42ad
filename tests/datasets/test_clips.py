"""Video files as frame sets: which frames there are, and their pixels."""

from __future__ import annotations

import gc
import io
import os
import pickle
import struct
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.decoding import check_size
from shiftproof.datasets.image_list import decoded
from shiftproof.datasets.video import video_files as module
from shiftproof.datasets.video.video_files import FRAME_TYPES, ClipReader, index_clip
from shiftproof.errors import BadInput, MissingExtra, UnreadableImage
from shiftproof.types import Image, Sample

Film = Callable[..., Path]


def moving(frames: int, height: int = 48, width: int = 64) -> NDArray[np.uint8]:
    """A bright square that moves a pixel a frame over a slope, in noise that no two frames share."""
    film = np.empty((frames, height, width, 3), np.uint8)
    film[:] = np.arange(height)[None, :, None, None] * 3
    film += np.random.default_rng(0).integers(0, 24, film.shape, np.uint8)
    for place, frame in enumerate(film):
        frame[8:20, place % width : place % width + 12] = (230, 200, 40)
    return film


@pytest.fixture
def film(tmp_path: Path) -> Film:
    """A small clip below the test's folder."""

    def filmed(
        name: str = "a.mp4",
        *,
        frames: int = 30,
        codec: str = "libx264",
        colours: str = "yuv420p",
        times: list[int] | None = None,
        container_options: dict[str, str] | None = None,
        **options: str,
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(path), "w", options=container_options or {}) as container:
            stream = container.add_stream(codec, rate=25, options=options)
            assert isinstance(stream, av.VideoStream)
            stream.height, stream.width = 48, 64
            stream.pix_fmt = colours
            for number, pixels in enumerate(moving(frames)):
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                frame.pts, frame.time_base = times[number] if times else number, Fraction(1, 25)
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return path

    return filmed


def sequential(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as container:
        return list(container.decode(video=0))


def pixels(images: ImageList, sample: Sample) -> Image:
    source = images.source(sample)
    return source.decode(source.read())


def assert_as_decoded_in_one_go(path: Path, order: Callable[[int], Iterable[int]] = range) -> None:
    """Of as many frames as there are in some order."""
    frames, index, reader = sequential(path), index_clip(str(path)), ClipReader(str(path))
    assert list(index.types) == [FRAME_TYPES[int(frame.pict_type)] for frame in frames]
    for number in order(len(frames)):
        place = index.place(number)
        assert place is not None
        assert np.array_equal(reader.read(place), frames[number].to_ndarray(format="rgb24")), number


@pytest.mark.real
@pytest.mark.parametrize("clip", ["bikes", "carphone_pristine", "cockatoo", "realshort"])
def test_frames_of_real_clips_are_those_of_one_sequential_decode(clip: str, real_data: Path) -> None:
    def order(total: int) -> list[int]:
        return [*range(5, total, 13), total - 1, 0, total // 2, total // 2 - 1, total // 2]

    assert_as_decoded_in_one_go(real_data / "video" / f"{clip}.mp4", order)


@pytest.mark.parametrize(
    ("name", "codec", "colours", "options"),
    [
        ("a.mp4", "libx264", "yuv420p", {"g": "8", "bf": "2"}),
        ("a.mp4", "libx264", "yuv420p", {"g": "8", "bf": "2", "x264-params": "open-gop=1"}),
        ("a.mp4", "libx264", "yuv420p", {"x264-params": "intra-refresh=1:keyint=10"}),
        ("a.mp4", "libx264", "yuv420p", {"x264-params": "slices=3"}),
        ("a.mkv", "libx264", "yuv422p10le", {"g": "8"}),
        ("a.mkv", "libx264", "gray", {"g": "8"}),
        ("a.avi", "libx264", "yuv444p", {"g": "8", "bf": "0"}),
        ("a.avi", "mpeg4", "yuv420p", {"g": "7"}),
        ("a.mpg", "mpeg2video", "yuv420p", {"g": "6", "bf": "2"}),
        ("a.mov", "mjpeg", "yuvj422p", {}),
        ("a.webm", "libvpx-vp9", "yuv420p", {"g": "10", "cpu-used": "8"}),
    ],
)
def test_any_codec_gives_the_frames_and_types_of_a_sequential_decode(
    name: str, codec: str, colours: str, options: dict[str, str], film: Film
) -> None:
    path = film(name, codec=codec, colours=colours, **options)
    assert len(index_clip(str(path)).types) == 30
    assert_as_decoded_in_one_go(path, lambda _: [*range(30), 17, 3, 29, 12])


def test_types_of_h264_need_no_decoding(film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    path = film(bf="2")
    monkeypatch.setattr(module, "decoded", None)
    types = index_clip(str(path)).types
    assert types[0] == "I"
    assert set(types) == {"I", "P", "B"}


def test_frames_are_numbered_as_they_come_however_long_each_is_shown(film: Film) -> None:
    path = film(times=[number**2 for number in range(20)], frames=20)
    images = open_dataset(path, k=1, anchors="3,1.1s")
    # 1.1 s are 27.5 steps of a 25th: nearest to 25, the time of frame 5
    assert [sample.facts["frame"] for sample in images.samples] == [2, 3, 4, 4, 5, 6]
    assert_as_decoded_in_one_go(path)


def test_clips_are_decoded_once_however_many_anchors_are_near_a_frame(film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    images = open_dataset(film(), k=6, every=3)
    shown: list[int] = []
    upright = module._upright

    def noted(frame: av.VideoFrame, turn: module.Rotation) -> Image:
        shown.append(int(frame.pts or 0))
        return upright(frame, turn)

    monkeypatch.setattr(module, "_upright", noted)
    for sample in images.samples:
        pixels(images, sample)
    assert len(shown) == len(set(shown)) == 28 < len(images.samples)  # the last anchor is 21


def test_frames_that_were_read_leave_memory_at_once(film: Film) -> None:
    images = open_dataset(film())
    gc.collect()
    before = _frames_in_memory()  # of clips that other tests hold open
    gc.disable()
    try:
        for sample in images.samples:
            pixels(images, sample)
        held = _frames_in_memory() - before
    finally:
        gc.enable()
    assert held < 10 < len(images.samples)


def _frames_in_memory() -> int:
    # by type: some objects of other libraries warn when they are asked for their class
    return sum(issubclass(type(one), av.VideoFrame) for one in gc.get_objects())


QUARTER_TURNS = {0: (1, 0, 0, 1), 1: (0, -1, 1, 0), 2: (-1, 0, 0, -1), 3: (0, 1, -1, 0)}
"""By quarter turns against the clock: where a step right goes (right, down), and a step down."""


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("turns", QUARTER_TURNS)
def test_clips_are_turned_and_mirrored_as_their_header_asks(turns: int, mirrored: bool, film: Film) -> None:
    path = film(frames=2)
    plain = sequential(path)[1].to_ndarray(format="rgb24")
    right_right, right_down, down_right, down_down = QUARTER_TURNS[turns]
    if mirrored:  # left and right are exchanged first
        right_right, right_down = -right_right, -right_down
    steps = [right_right, right_down, 0, down_right, down_down, 0, 0, 0]
    data = bytearray(path.read_bytes())
    at = data.index(b"tkhd") + 44
    data[at : at + 36] = struct.pack(">9i", *(step << 16 for step in steps), 1 << 30)
    path.write_bytes(data)
    images = open_dataset(path)
    expected = np.rot90(plain[:, ::-1] if mirrored else plain, turns)
    assert np.array_equal(pixels(images, images.samples[1]), expected)


def test_of_a_truncated_clip_the_frames_before_the_end_are_there(film: Film) -> None:
    path = film(container_options={"movflags": "faststart"}, g="5", bf="0")
    whole = [frame.to_ndarray(format="rgb24") for frame in sequential(path)]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    images = open_dataset(path, k=2)
    assert [sample.facts["frame"] for sample in images.samples] == list(range(30))
    read, reasons = 0, set()
    for number, sample in enumerate(images.samples):
        try:
            assert np.array_equal(pixels(images, sample), whole[number])
            read += 1
            assert read == number + 1
        except UnreadableImage as reason:
            reasons.add(str(reason))
    assert 5 < read < 25
    assert reasons == {"broken video: the file ends before this frame"}


def _sound() -> bytes:
    data = io.BytesIO()
    with av.open(data, "w", format="mp4") as container:
        stream = container.add_stream("aac", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 4096), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return data.getvalue()


BROKEN = {
    b"": "empty file",
    b"no video at all": "broken video: invalid data",
    _sound(): "no pictures in this file, only sound",
}


@pytest.mark.parametrize("data", BROKEN)
def test_a_file_without_pictures_says_so_and_among_others_is_skipped(data: bytes, film: Film, tmp_path: Path) -> None:
    (tmp_path / "b.mp4").write_bytes(data)
    with pytest.raises(BadInput, match=f"b.mp4: {BROKEN[data]}"):
        open_dataset(tmp_path / "b.mp4")
    film("a.mp4", frames=5)
    images = open_dataset(tmp_path, k=2)
    assert [sample.id for sample in images.samples] == [*(f"a.mp4/00000{number}" for number in range(5)), "b.mp4/000000"]
    with pytest.raises(UnreadableImage, match=BROKEN[data]):
        pixels(images, images.samples[-1])


@pytest.mark.parametrize(
    ("box", "says"),
    [
        (b"avc1", "broken video: no decoder knows its pictures"),
        (b"stsd", "broken video: no decoder knows its pictures"),
        (b"stsz", "broken video: this frame cannot be decoded"),
        (b"stts", "broken video: this frame cannot be decoded"),
    ],
)
def test_a_clip_whose_tables_are_broken_is_skipped_and_the_others_are_read(
    box: bytes, says: str, film: Film, tmp_path: Path
) -> None:
    broken = film("b.mp4", frames=5)
    broken.write_bytes(broken.read_bytes().replace(box, b"free" if box != b"avc1" else b"zzzz"))
    film("a.mp4", frames=5)
    images = open_dataset(tmp_path, k=2)
    assert pixels(images, images.samples[0]).shape == (48, 64, 3)
    with pytest.raises(UnreadableImage, match=says):
        pixels(images, images.samples[-1])


def test_a_title_in_any_encoding_does_no_harm(film: Film) -> None:
    clip = film(frames=5)
    with av.open(str(clip)) as opened, av.open(str(clip.with_name("b.mp4")), "w") as copy:
        copy.metadata["title"] = "cafe at noon"
        stream = copy.add_stream_from_template(opened.streams.video[0])
        for packet in opened.demux(opened.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    titled = clip.with_name("b.mp4")
    titled.write_bytes(titled.read_bytes().replace(b"cafe", b"caf\xe9"))
    assert len(index_clip(str(titled)).types) == 5


@pytest.mark.parametrize("kind", ["pipe", "list of files", "too large"])
def test_what_only_looks_like_a_clip_is_skipped(
    kind: str, film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film("a.mp4", frames=5)
    if kind == "pipe":
        os.mkfifo(tmp_path / "b.mp4")
    elif kind == "list of files":
        (tmp_path / "b.mp4").write_text(f"ffconcat version 1.0\nfile {tmp_path}/a.mp4\n")
    else:
        film("b.mp4", frames=5)
        monkeypatch.setattr("shiftproof.datasets.video.video_files.check_size", lambda size: check_size(size, 100))
    images = open_dataset(tmp_path, k=2)
    assert images.samples[-1].id == "b.mp4/000000"
    told = decoded(images.source(images.samples[-1]))
    assert isinstance(told, str)
    assert told.startswith(("cannot be read: not a regular file", "broken video: ", "64 x 48 pixels, limit is 100"))


def test_a_clip_that_changes_is_read_anew(film: Film) -> None:
    images = open_dataset(film(frames=5))
    source = images.source(images.samples[2])
    before, shown = (source.stamp(), source.read()), source.decode(source.read())
    film(frames=5, crf="50")
    assert source.stamp() != before[0]
    assert source.read() != before[1]
    assert not np.array_equal(source.decode(source.read()), shown)


def test_frames_have_stamps_and_digests_of_their_own_and_travel_to_other_processes(film: Film) -> None:
    images = open_dataset(film(frames=5))
    sources = [pickle.loads(pickle.dumps(images.source(sample))) for sample in images.samples]
    assert len({source.stamp() for source in sources}) == len({source.read() for source in sources}) == 5
    assert np.array_equal(sources[3].decode(sources[3].read()), pixels(images, images.samples[3]))


def test_clips_are_labelled_by_their_folders_or_by_one_label_for_all(film: Film, tmp_path: Path) -> None:
    film("clips/n01440764/a.mp4", frames=5)
    path = film("clips/n01443537/b.avi", frames=5, codec="mpeg4")
    images = open_dataset(tmp_path / "clips", k=1)
    assert {(sample.facts["clip"], sample.labels) for sample in images.samples} == {
        ("n01440764/a.mp4", (0,)), ("n01443537/b.avi", (1,)),
    }  # fmt: skip
    alone = open_dataset(path, label="tench")
    assert alone.classes is not None
    assert alone.classes.names == ("tench",)
    assert all(sample.labels == (0,) for sample in alone.samples)


def test_a_table_of_clips_gives_labels_facts_and_anchors(film: Film, tmp_path: Path) -> None:
    film("a.mp4"), film("b.mp4")
    (tmp_path / "list.csv").write_text("path,label,site,anchor\na.mp4,cat,north,7\nb.mp4,dog,south,0.4s|20\n")
    images = open_dataset(tmp_path / "list.csv", kind="clips", k=1)
    assert {sample.facts["anchor"] for sample in images.samples} == {"a.mp4/000007", "b.mp4/000010", "b.mp4/000020"}
    assert {(sample.facts["site"], sample.labels) for sample in images.samples} == {("north", (0,)), ("south", (1,))}


def test_clips_without_their_library_name_the_extra(film: Film, monkeypatch: pytest.MonkeyPatch) -> None:
    path = film(frames=3)
    monkeypatch.setitem(sys.modules, "av", None)
    for name in ("video.clips", "video.video_files"):
        monkeypatch.delitem(sys.modules, f"shiftproof.datasets.{name}", raising=False)
    with pytest.raises(MissingExtra, match=r"dataset 'clips' needs: pip install 'shiftproof\[video\]'"):
        open_dataset(path)
