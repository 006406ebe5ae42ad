"""Options of the study of input sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from shiftproof.errors import BadInput
from shiftproof.options import option
from shiftproof.studies.options import SIDES, Assembled, Context, StudyOptions

if TYPE_CHECKING:
    from shiftproof.models.input_sizes import InputSize, Sizing
    from shiftproof.runs.store import Store
    from shiftproof.studies.input_sizes.study import Sized
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Classifier, Dataset, ModelRef


class InputSizeOptions(StudyOptions):
    """Every model at its own size and at others, as far as it can be had at them."""

    TITLE: ClassVar[str] = "Input sizes"

    input_sizes: tuple[str, ...] = option(
        ("96", "128", "160", "192", "224", "288", "384", "448"),
        "Input sizes besides the model's own: sides of squares, or height and width as 600x800, comma-separated.",
    )
    small_pictures: bool = option(
        False,
        "Downscale pictures to --input-sizes and upscale them to the model's input; done anyway where it takes one size "
        "only.",
    )

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.studies.base import model_ref
        from shiftproof.types import ModelRef

        wanted = self.sizes()
        sizing: Sizing | None = "picture" if self.small_pictures else None
        sizes = {
            model_ref(model).name: list(
                _stored(model, wanted, sizing, context.store)
                if isinstance(model, ModelRef)
                else _made(model, wanted, sizing)
            )
            for model in models
        }
        companions = [one.model for some in sizes.values() for one in some if not isinstance(one.model, ModelRef)]
        return Assembled([study(models=models, dataset=dataset, sizes=sizes, wanted=wanted)], [dataset], companions)

    def sizes(self) -> tuple[InputSize, ...]:
        """Sides of squares, or height and width.

        >>> InputSizeOptions(input_sizes=("96", "600x800")).sizes()
        (96, (600, 800))
        """
        from shiftproof.models.input_sizes import short_size

        words, least, most = [word.split("x") for word in self.input_sizes], SIDES.least, SIDES.most
        fit = all(side.isdigit() and (least or 0) <= int(side) <= (most or 0) for sides in words for side in sides)
        if not words or not fit or max(map(len, words)) > 2:
            raise BadInput(
                f"input sizes should be some of {least} to {most} with commas between them, height first where they are not "
                f"square, as 96,600x800; got {','.join(self.input_sizes)!r}"
            )
        return tuple(dict.fromkeys(short_size((int(sides[0]), int(sides[-1]))) for sides in words))


def _made(model: Classifier, sizes: Sequence[InputSize], sizing: Sizing | None) -> Iterator[Sized]:
    """The model at hand; small pictures are upscaled to its own size, so that larger ones are left out."""
    from shiftproof.models.input_sizes import at_input_size, height_and_width, own_size, short_size, sizing_of
    from shiftproof.studies.input_sizes.study import Sized

    own, chosen = own_size(model), sizing or sizing_of(model)
    for size in dict.fromkeys([*sizes, short_size(own)]):
        height, width = height_and_width(size)
        if chosen == "input" or (height <= own[0] and width <= own[1]):
            yield Sized(size, at_input_size(model, size, sizing=chosen), "input" if (height, width) == own else chosen)


def _stored(model: ModelRef, sizes: Sequence[InputSize], sizing: Sizing | None, store: Store) -> Iterator[Sized]:
    """Those of the sizes at which a stored model was run before."""
    from shiftproof.models.input_sizes import Sizing, short_size, sized_ref
    from shiftproof.studies.input_sizes.study import Sized

    known = store.model(model)
    height, _, width = str(known.preprocessing.get("size", "") if known else "").partition("x")
    if not height.isdigit() or not width.isdigit():
        raise BadInput(f"{model.name} was stored without an input size of its own, so it has no other sizes")
    own = short_size((int(height), int(width)))
    yield Sized(own, model, "input")
    for size in sizes:
        for way in [sizing] if sizing else get_args(Sizing):
            if size != own and store.model(sized_ref(model, size, way)) is not None:
                yield Sized(size, sized_ref(model, size, way), way)
                break
