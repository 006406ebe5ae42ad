"""Single images for whoever shows them."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import image_opener
from shiftproof.errors import UnreadableImage
from shiftproof.types import DatasetRef


def test_an_image_of_a_set_that_is_not_at_hand_is_said_to_be_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("arrays") / "images.npy"
    np.save(path, np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3))
    images = open_dataset(str(path))
    open_image = image_opener([images])
    assert np.array_equal(open_image(images.ref, images.samples[1].id), np.load(path)[1])
    with pytest.raises(UnreadableImage, match="clips is not at hand"):
        open_image(DatasetRef("clips", "other"), images.samples[1].id)
    with pytest.raises(UnreadableImage):
        open_image(images.ref, "no such image")
