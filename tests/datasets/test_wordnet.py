"""WordNet 3.0: the nouns that come with the package, what they are kinds of, and how far they are apart."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from shiftproof.datasets.wordnet import (
    DOG,
    ENTITY,
    NOUNS,
    Noun,
    WordNet,
    ilsvrc_index,
    ilsvrc_wnid,
    load_wordnet,
    packed,
    parse_data_noun,
    wordnet,
)
from shiftproof.errors import BadInput, UnknownName
from shiftproof.reference import ilsvrc_all_names, ilsvrc_classes, wnids_of

TENCH, SHUTTLE, TABBY, EGYPTIAN_CAT = "n01440764", "n04266014", "n02123045", "n02124075"
ILSVRC = ilsvrc_classes().keys


@pytest.fixture
def zoo(tmp_path: Path) -> WordNet:
    """Six nouns: a mule is a horse and a donkey, both are beasts, and Bucephalus was a horse.

    entity - beast - horse - mule, entity - beast - donkey - mule, horse - Bucephalus, entity - stone.
    """
    lines = [
        "  1 This is the licence.  ",
        "00001740 03 n 01 entity 0 002 ~ 00000002 n 0000 ~ 00000007 n 0000 | all there is  ",
        "00000002 05 n 02 beast 0 wild_beast 1 003 @ 00001740 n 0000 ~ 00000003 n 0000 ~ 00000004 n 0000 | moves  ",
        "00000003 05 n 01 horse 0 002 @ 00000002 n 0000 + 01139623 v 0101 | rides  ",
        "00000004 05 n 01 donkey 0 001 @ 00000002 n 0000 | says | i-a  ",
        "00000005 05 n 01 mule 0 002 @ 00000004 n 0000 @ 00000003 n 0000 | neither  ",
        "00000006 05 n 0b Bucephalus 0 a 0 b 0 c 0 d 0 e 0 f 0 g 0 h 0 i 0 j 0 001 @i 00000003 n 0000 | of Alexander  ",
        "00000007 05 n 01 stone 0 001 @ 00001740 n 0000 | lies  ",
        "02084071 05 n 01 dog 0 001 @ 00000002 n 0000 | barks  ",
    ]
    (tmp_path / "data.noun").write_text("\n".join(lines) + "\n")
    return load_wordnet(tmp_path / "data.noun")


def test_all_nouns_are_there_and_lead_up_to_entity() -> None:
    nouns = wordnet()
    assert len(nouns) == 82_115  # as WordNet's own statistics say
    assert [wnid for wnid in nouns.rows if not nouns.hypernyms(wnid)] == [ENTITY]
    assert all(ENTITY in nouns.steps_up(wnid) for wnid in nouns.rows)
    assert len(nouns.descendants(ENTITY)) == len(nouns) - 1


def test_every_class_of_the_published_lists_is_a_noun_under_its_published_names() -> None:
    nouns = wordnet()
    assert [nouns.words(wnid) for wnid in ILSVRC] == list(ilsvrc_all_names())
    for name in ("imagenet_a_classes", "imagenet_r_classes", "imagenet_o_classes", "imagenet_ood_classes"):
        assert all(wnid in nouns for wnid in wnids_of(name))


def test_a_tench_is_a_cyprinid_and_so_on_up_to_an_entity() -> None:
    (path,) = wordnet().paths(TENCH)
    assert [wordnet().name(wnid) for wnid in path] == [
        *("tench", "cyprinid", "cypriniform fish", "soft-finned fish", "teleost fish", "bony fish", "fish"),
        *("aquatic vertebrate", "vertebrate", "chordate", "animal", "organism", "living thing"),
        *("whole", "object", "physical entity", "entity"),
    ]
    assert wordnet().depth(TENCH) == len(path) - 1


def test_a_dog_is_a_canine_and_a_domestic_animal() -> None:
    assert wordnet().words(DOG) == ("dog", "domestic dog", "Canis familiaris")
    assert [wordnet().name(above) for above in wordnet().hypernyms(DOG)] == ["canine", "domestic animal"]
    assert {path[1] for path in wordnet().paths(DOG)} == set(wordnet().hypernyms(DOG))


def test_kinds_and_examples_are_read_word_counts_in_hexadecimal_and_pipes_in_glosses_aside(zoo: WordNet) -> None:
    assert zoo.hypernyms("n00000005") == ("n00000004", "n00000003")
    assert zoo.hypernyms("n00000006") == ("n00000003",)
    assert zoo.words("n00000006") == ("Bucephalus", *"abcdefghij")
    assert zoo.words("n00000002") == ("beast", "wild beast")


def test_what_is_above_below_and_beside_in_a_small_tree(zoo: WordNet) -> None:
    beast, horse, donkey, mule, bucephalus, stone = (f"n0000000{number}" for number in range(2, 8))
    assert zoo.ancestors(mule) == {horse, donkey, beast, ENTITY}
    assert zoo.descendants(beast) == {horse, donkey, mule, bucephalus, DOG}
    assert zoo.siblings(mule) == {bucephalus}
    assert zoo.siblings(horse) == {donkey, DOG}
    assert zoo.siblings(ENTITY) == frozenset()
    assert zoo.paths(mule) == ((mule, donkey, beast, ENTITY), (mule, horse, beast, ENTITY))
    assert zoo.lowest_common_ancestors(mule, bucephalus) == (horse,)
    assert zoo.lowest_common_ancestors(mule, horse) == (horse,)
    assert zoo.lowest_common_ancestors(mule, stone) == (ENTITY,)
    assert [zoo.distance(mule, other) for other in (mule, horse, bucephalus, beast, stone)] == [0, 1, 2, 2, 4]
    assert [zoo.depth(wnid) for wnid in (ENTITY, beast, mule)] == [0, 1, 3]


def test_several_lowest_common_ancestors_are_all_named(zoo: WordNet) -> None:
    hinny = Noun("n00000008", ("n00000003", "n00000004"), (), ("hinny",))
    rows = dict(zoo.rows) | {hinny.wnid: packed([hinny]).strip("\n").partition("\t")[2]}
    assert WordNet(rows).lowest_common_ancestors("n00000005", "n00000008") == ("n00000003", "n00000004")


def test_near_classes_are_near_and_far_ones_far() -> None:
    tree = wordnet()
    assert tree.distance(TABBY, EGYPTIAN_CAT) == 2
    assert tree.lowest_common_ancestors(TABBY, EGYPTIAN_CAT) == (tree.find("domestic cat")[0],)
    # ten steps and three to the whole, six down to the shuttle
    assert tree.distance(TENCH, SHUTTLE) == 13 + 6
    assert [tree.name(above) for above in tree.lowest_common_ancestors(TENCH, SHUTTLE)] == ["whole"]


def test_distances_are_those_of_a_walk_through_the_tree_that_turns_once() -> None:
    """A second opinion: every pair of paths, and the steps to where they first meet."""
    tree, generator = wordnet(), np.random.default_rng(0)
    for one, other in zip(generator.choice(ILSVRC, 200), generator.choice(ILSVRC, 200), strict=True):
        meetings = [
            mine.index(shared) + theirs.index(shared)
            for mine in tree.paths(str(one))
            for theirs in tree.paths(str(other))
            for shared in set(mine) & set(theirs)
        ]
        assert tree.distance(str(one), str(other)) == tree.distance(str(other), str(one)) == min(meetings)


def test_words_are_found_whatever_their_case_and_underscores_the_widest_meaning_first() -> None:
    tree = wordnet()
    assert tree.find("Great_White  Shark") == ("n01484850",)
    assert tree.find("organism")[0] == "n00004475"
    assert {"n02012849", "n03126707"} < set(tree.find("crane"))
    sizes = [len(tree.descendants(wnid)) for wnid in tree.find("plant")]
    assert sizes == sorted(sizes, reverse=True)


def test_what_is_not_there_is_answered_with_what_is_near() -> None:
    with pytest.raises(UnknownName, match=r"called 'n02084072'; did you mean .*n02084071"):
        wordnet().words("n02084072")
    with pytest.raises(BadInput, match="'dog' is no wnid; they look like n02084071"):
        wordnet().hyponyms("dog")
    with pytest.raises(UnknownName, match="did you mean organism"):
        wordnet().find("organsm")
    with pytest.raises(BadInput, match=r"no noun of WordNet 3\.0 is called 'qqqqq'"):
        wordnet().find("qqqqq")


def test_ilsvrc_labels_and_wnids_lead_to_each_other() -> None:
    assert [ilsvrc_wnid(ilsvrc_index(wnid)) for wnid in ILSVRC] == list(ILSVRC)
    with pytest.raises(UnknownName, match="did you mean n01440764"):
        ilsvrc_index("n01440765")
    with pytest.raises(BadInput, match="from 0 to 999, got -1"):
        ilsvrc_wnid(-1)


def test_another_edition_and_other_files_are_refused(tmp_path: Path) -> None:
    later = tmp_path / "data.noun"
    later.write_text("00001740 03 n 01 entity 0 000 | all\n02084071 05 n 01 newt 0 001 @ 00001740 n 0000 | of 3.1\n")
    with pytest.raises(BadInput, match=r"is not of WordNet 3\.0"):
        load_wordnet(later)
    later.write_text("# A page\nabout nouns\n")
    with pytest.raises(BadInput, match=r"cannot be read as data\.noun"):
        load_wordnet(later)
    with pytest.raises(BadInput, match="cannot be read"):
        load_wordnet(tmp_path / "nowhere")


def test_what_is_packed_comes_back_as_it_was() -> None:
    text = gzip.decompress(files("shiftproof.reference").joinpath(NOUNS).read_bytes()).decode()
    nouns = [wordnet().noun(line[:9]) for line in text.splitlines()]
    assert packed(nouns) == text


def test_the_licence_lies_beside_the_nouns() -> None:
    text = files("shiftproof.reference").joinpath("wordnet30_LICENSE.txt").read_text()
    assert "WordNet 3.0 Copyright 2006 by Princeton University" in text
    assert "provided that you agree to comply with" in text


def test_a_copy_on_this_system_has_the_same_nouns() -> None:
    copy = Path("/usr/share/wordnet/data.noun")
    if not copy.exists():
        pytest.skip("no WordNet installed on this system")
    assert load_wordnet(copy).rows == wordnet().rows


@pytest.mark.real
def test_the_nouns_are_those_of_an_independent_reading(real_data: Path) -> None:
    text = gzip.decompress((real_data / "lists" / "wordnet30_nouns.tsv.gz").read_bytes()).decode()
    theirs = {}
    for place, kinds, examples, words in (line.split("\t") for line in text.splitlines()):
        above = [*kinds.split(","), *examples.split(",")]
        theirs[f"n{place}"] = {f"n{one}" for one in above if one}, words.replace("_", " ").split("|")
    ours = {wnid: (set(wordnet().hypernyms(wnid)), [*wordnet().words(wnid)]) for wnid in wordnet().rows}
    assert ours == theirs


def test_importing_reads_nothing_and_loading_is_quick() -> None:
    script = (
        "import gzip\n"
        "def refuse(*_): raise AssertionError('read too soon')\n"
        "kept, gzip.decompress = gzip.decompress, refuse\n"
        "import shiftproof.datasets.wordnet as w\n"
        "gzip.decompress = kept\n"
        "import time\n"
        "started = time.process_time()\n"
        "assert w.wordnet().name('n02084071') == 'dog'\n"
        "print(time.process_time() - started)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(said.stdout) < 0.3


def test_the_way_up_from_a_class_is_gone_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = wordnet()
    before = [tree.distance(one, other) for one, other in zip(ILSVRC, reversed(ILSVRC), strict=True)]
    monkeypatch.setattr(type(tree), "hypernyms", lambda *_: pytest.fail("the tree is climbed again"))
    assert [tree.distance(one, other) for one, other in zip(reversed(ILSVRC), ILSVRC, strict=True)] == before


def test_the_head_of_data_noun_is_no_noun() -> None:
    assert list(parse_data_noun(["  1 This software and database is being provided to you  "])) == []
