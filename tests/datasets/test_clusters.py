"""What counts as one case: found from what sets say of their images, named, or read from a table."""

from __future__ import annotations

from pathlib import Path

import pytest

import shiftproof as sp
from shiftproof.datasets.clusters import Clustering, clustering, looks_clustered
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.errors import BadInput, UnknownName
from shiftproof.types import Clusters, Fact, Sample


def sample(image_id: str, **facts: Fact) -> Sample:
    return Sample(image_id, (0,), facts)


@pytest.mark.parametrize(
    ("samples", "unit", "keys"),
    [
        (
            [sample("a.mp4/1", clip="a.mp4", anchor="x", offset=0), sample("b.mp4/1", clip="b.mp4")],
            "clip",
            ("a.mp4", "b.mp4"),
        ),
        (
            [
                sample("fog/1/cat/a.png", corruption="fog", severity=1),
                sample("snow/5/cat/a.png", corruption="snow", severity=5),
            ],
            "source image",
            ("cat/a.png", "cat/a.png"),
        ),
        ([sample("a.png/tilt/00", sequence="a.png", frame=0, perturbation="tilt", level=1)], "source image", ("a.png",)),
        ([sample("v/000001.JPEG", sequence="v", frame=1)], "clip", ("v",)),
        (
            [sample("v/1.png", anchor="v/3.png", offset=-2), sample("v/3.png", anchor="v/3.png", offset=0)],
            "clip",
            ("v", "v"),
        ),
        ([sample("a.jpg/000", cut="crop"), sample("a.jpg/001", cut="crop")], "source image", ("a.jpg", "a.jpg")),
        ([sample("x.png", photo="p.jpg", varied="brightness", strength=2)], "source image", ("p.jpg",)),
    ],
)
def test_sets_that_tell_where_images_come_from_are_clustered_by_it(
    samples: list[Sample], unit: str, keys: tuple[str, ...]
) -> None:
    assert Clustering().of(samples) == Clusters(unit, keys)
    alone = Clustering("image").of(samples)
    assert alone is not None
    assert alone.numbers is None


def test_photos_of_which_nothing_is_known_are_cases_of_their_own() -> None:
    assert Clustering().of([sample("a.png"), sample("b.png", camera="left")]) is None


def test_a_fact_that_is_named_is_the_case_and_who_lacks_it_stands_alone() -> None:
    samples = [sample("a", patient="p1"), sample("b", patient="p1"), sample("c"), sample("d", patient=None)]
    found = Clustering("patient").of(samples)
    assert found == Clusters("patient", ("p1", "p1", "c", "d"), named=True)
    assert found.count == 3


def test_what_the_user_names_is_told_from_what_was_found_even_by_the_same_name() -> None:
    frames = [sample(f"{clip}/{frame}", clip=clip) for clip in "ab" for frame in "12"]
    keys = ("a", "a", "b", "b")
    assert Clustering().of(frames) == Clusters("clip", keys)
    assert Clustering("clip").of(frames) == Clusters("clip", keys, named=True) != Clusters("clip", keys)


def test_a_fact_that_no_image_has_is_an_error_that_names_those_there_are() -> None:
    images = ImageList("few", [sample("a", patient="p1")], None, FilesBelow(""))
    Clustering("patient").check([images])
    with pytest.raises(UnknownName, match="patient"):
        Clustering("pateint").check([images])


def test_images_that_look_alike_are_one_case_however_many_steps_lie_between(tmp_path: Path) -> None:
    table = tmp_path / "duplicates.csv"
    table.write_text("id,step,reason,other\nb,x,y,a\nc,x,y,b\nbad,can be read,broken,\n", encoding="utf-8")
    found = clustering(str(table)).of([sample("a"), sample("b"), sample("c"), sample("d"), sample("bad")])
    assert found is not None
    assert found.count == 3
    assert len(set(found.keys[:3])) == 1


def test_a_table_of_clusters_is_taken_at_its_word_and_another_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "wards.csv"
    table.write_text("id,cluster\na,north\nb,north\n", encoding="utf-8")
    found = clustering(str(table)).of([sample("a"), sample("b"), sample("c")])
    assert found is not None
    assert found.keys == ("north", "north", "c")
    table.write_text("image,ward\na,north\n", encoding="utf-8")
    with pytest.raises(BadInput, match="columns id and cluster"):
        clustering(str(table))


def test_a_table_as_a_spreadsheet_writes_it_is_read_and_blanks_are_no_cluster(tmp_path: Path) -> None:
    table = tmp_path / "wards.csv"
    table.write_text("id,cluster\na,north\nb,\nc,\nd\n", encoding="utf-8-sig")
    found = clustering(str(table))
    images = [sample(name) for name in "abcde"]
    assert found.of(images) == Clusters("cluster", ("north", "b", "c", "d", "e"), named=True)
    assert found.without(images) == 4


def test_a_table_that_contradicts_itself_or_lists_other_images_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "wards.csv"
    table.write_text("id,cluster\na,north\na,south\n", encoding="utf-8")
    with pytest.raises(BadInput, match="a into two clusters, north and south"):
        clustering(str(table))
    table.write_text("id,cluster\nphotos/a.png,north\n", encoding="utf-8")
    with pytest.raises(BadInput, match=r"ids such as photos/a\.png, they have ids such as a\.png"):
        clustering(str(table)).check([ImageList("few", [sample("a.png")], None, FilesBelow(""))])
    with pytest.raises(BadInput, match="no file"):
        clustering(str(tmp_path / "none.csv"))


def test_a_table_without_a_single_duplicate_says_that_images_are_cases_of_their_own(tmp_path: Path) -> None:
    table = tmp_path / "duplicates.csv"
    table.write_text("id,step,reason,other\n", encoding="utf-8")
    found = clustering(str(table))
    found.check([ImageList("few", [sample("a")], None, FilesBelow(""))])
    grouped = found.of([sample("a"), sample("b")])
    assert grouped is not None
    assert grouped.numbers is None
    assert found.without([sample("a")]) == 0


def test_images_that_lack_the_fact_that_was_named_are_counted() -> None:
    assert Clustering("patient").without([sample("a", patient="p1"), sample("b"), sample("c", patient=None)]) == 2


def test_cases_whose_images_look_alike_are_one_and_what_was_named_stays() -> None:
    frames = [sample(f"{clip}/{number}", clip=clip) for clip in "abcd" for number in range(3)]
    alike = {"a/1": "1", "c/0": "1", "c/2": "2", "d/2": "2", "b/0": "3"}
    joined = Clustering().joining(frames, alike)
    found = joined.of(frames)
    assert found is not None
    assert (found.count, found.case) == (2, "clip (near-duplicates joined)")
    assert len({key for one, key in zip(frames, found.keys, strict=True) if one.facts["clip"] != "b"}) == 1
    # of some of the images alone the same: that a and d belong together is told by frames of c
    some = joined.of([frames[0], frames[-1]])
    assert some is not None
    assert some.count == 1
    assert Clustering("clip").joining(frames, alike) == Clustering("clip")
    assert Clustering().joining(frames, {"b/0": "3"}).of(frames) == Clustering().of(frames)


@pytest.mark.parametrize(
    ("ids", "warned"),
    [
        ([f"n{label:08d}/n{label:08d}_{number}.JPEG" for label in range(9) for number in range(20)], False),
        ([f"cat/IMG_{number:04d}.jpg" for number in range(90)], False),
        ([f"ILSVRC2012_val_{number:08d}.JPEG" for number in range(90)], False),
        ([f"cat/{number}.png" for number in range(90)], False),
        ([f"cat/DSC{number:05d}.JPG" for number in range(1200, 1290)], False),
        ([f"val2017/{number:012d}.jpg" for number in range(139, 9000, 99)], False),
        # VOC: a year, and a number that has gaps or none
        ([f"JPEGImages/{year}_{27 + 5 * number:06d}.jpg" for year in range(2007, 2013) for number in range(40)], False),
        ([f"{year}_{number:06d}.jpg" for year in range(2007, 2013) for number in range(40)], False),
        # photos of ILSVRC's training set without its folders
        ([f"n{1440764 + label:08d}_{10026 + 7 * number}.JPEG" for label in range(9) for number in range(20)], False),
        # most photos are of one camera, the others of some more
        (
            [f"IMG_{number:04d}.jpg" for number in range(90)]
            + [f"{camera}{number:04d}.jpg" for camera in ("DSC", "DSCN", "GOPR", "P101", "SAM_") for number in range(10)],
            False,
        ),
        # recordings that are named after their day are sources
        ([f"20190{month}12_{frame:04d}.png" for month in range(1, 8) for frame in range(20)], True),
        ([f"clip{letter}_{frame:04d}.jpg" for letter in "ABCDEFG" for frame in range(0, 300, 30)], True),
        # styles of ImageNet-R, in every folder alike
        (
            [
                f"n{label}/{style}_{number}.jpg"
                for label in range(9)
                for style in ("art", "toy", "tattoo")
                for number in range(9)
            ],
            False,
        ),
        ([f"ward/patient{person:02d}_{slice_:03d}.png" for person in range(9) for slice_ in range(10)], True),
        ([f"cat/clip{clip}-frame{frame}.jpg" for clip in range(9) for frame in range(10)], True),
        ([f"{change}/cat/{number}.png" for change in ("fog", "snow") for number in range(30)], True),
    ],
)
def test_names_that_give_a_common_source_away_are_warned_about(ids: list[str], warned: bool) -> None:
    folders = sorted({Path(image_id).parent.name for image_id in ids})
    samples = [Sample(image_id, (folders.index(Path(image_id).parent.name),)) for image_id in ids]
    assert (looks_clustered(samples) is not None) == warned


def test_series_that_are_named_after_their_class_are_no_sources() -> None:
    breeds = ["Abyssinian", "beagle", "Bengal", "boxer", "pug", "Sphynx"]
    pets = [Sample(f"{breed}_{number}.jpg", (label,)) for label, breed in enumerate(breeds) for number in range(9)]
    assert looks_clustered(pets) is None
    alike = [Sample(one.id, (0,)) for one in pets]  # six numbered series of one class: clips, patients
    assert looks_clustered(alike) is not None


def test_corrupted_versions_opened_as_one_set_are_as_many_cases_as_photos(tmp_path: Path) -> None:
    from PIL import Image

    for corruption in ("fog", "snow"):
        for severity in range(1, 6):
            folder = tmp_path / "photos-c" / corruption / str(severity) / "cat"
            folder.mkdir(parents=True)
            for number in range(7):
                Image.new("RGB", (8, 8), (number, severity, 0)).save(folder / f"{number}.png")
    images = sp.open_dataset(str(tmp_path / "photos-c"))
    found = Clustering().of(images.samples)
    assert found is not None
    assert (found.unit, len(found), found.count) == ("source image", 70, 7)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("id,id,cluster\na,b,1\n", "two columns called 'id'"), ('id,cluster\n"a,1\nb,2\n', "cannot be read as a table")],
)
def test_a_table_that_could_be_read_in_two_ways_is_refused(text: str, answer: str, tmp_path: Path) -> None:
    table = tmp_path / "wards.csv"
    table.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=answer):
        clustering(str(table))
