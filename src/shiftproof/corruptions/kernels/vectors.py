"""Vector instructions where numba finds none: for a pixel, and for loops too short for its look at what touches what.

Kernels of pixels take the four samples from a place on, those of the next pixel, and those of the two pixels below. A pixel
has three channels: the fourth sample belongs to its neighbour and is overwritten by it, so arrays need room for one more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

Blend: TypeAlias = Callable[..., None]
"""(samples, place, step to the row below, share of the right pixel, of the row below, result, place there, ...): places and
the step count samples and have no sign.
"""

CHANNELS = 3
BYTES, SHORTS, WORDS, FLOATS = (ir.VectorType(kind, 4) for kind in (*map(ir.IntType, (8, 16, 32)), ir.FloatType()))


def _tilt(_: Any, samples: Any, place: Any, below: Any, right: Any, down: Any, result: Any, at: Any) -> Any:
    """Writes floats between bytes, without an error; shares are whole numbers of 32nds."""

    def code(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        load, store = _memory(context, build, signature, arguments, BYTES)
        right_share = _all_four(build, build.trunc(arguments[3], SHORTS.element), SHORTS)
        left_share = build.sub(ir.Constant(SHORTS, [32] * 4), right_share)

        def across(row: bool) -> Any:
            first, second = (build.zext(load(row, step), SHORTS) for step in (0, CHANNELS))
            return build.zext(build.add(build.mul(first, left_share), build.mul(second, right_share)), WORDS)

        upper, lower = across(False), across(True)
        change = build.mul(build.sub(lower, upper), _all_four(build, arguments[4], WORDS))
        total = build.add(build.shl(upper, ir.Constant(WORDS, [5] * 4)), change)
        store(build.fmul(build.sitofp(total, FLOATS), ir.Constant(FLOATS, [1 / 1024] * 4)), arguments[6])
        return context.get_dummy_value()

    return types.void(samples, place, below, right, down, result, at), code


def _blend(_: Any, samples: Any, place: Any, below: Any, right: Any, down: Any, result: Any, at: Any) -> Any:
    """Writes floats between others."""

    def code(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        load, store = _memory(context, build, signature, arguments, FLOATS)
        store(_between_four(build, load, arguments)[0], arguments[6])
        return context.get_dummy_value()

    return types.void(samples, place, below, right, down, result, at), code


def _blend_within(
    _: Any, samples: Any, place: Any, below: Any, right: Any, down: Any, result: Any, at: Any, slack: Any, reach: Any
) -> Any:
    """The same; and, at another place of the result, how far shares that differ by a slack would move them."""

    def code(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
        load, store = _memory(context, build, signature, arguments, FLOATS)
        level, *changes = _between_four(build, load, arguments)
        positive = ir.Constant(WORDS, [0x7FFFFFFF] * 4)
        upper, lower, along = (
            build.bitcast(build.and_(build.bitcast(change, WORDS), positive), FLOATS) for change in changes
        )
        contrast = build.fadd(build.select(build.fcmp_ordered(">", upper, lower), upper, lower), along)
        store(level, arguments[6])
        store(build.fmul(_all_four(build, arguments[7], FLOATS), contrast), arguments[8])
        return context.get_dummy_value()

    return types.void(samples, place, below, right, down, result, at, slack, reach), code


def _between_four(build: Any, load: Any, arguments: Any) -> tuple[Any, Any, Any, Any]:
    """The samples between four, and the changes along the upper row, along the lower, and from one to the other."""
    right_share, down_share = (_all_four(build, share, FLOATS) for share in arguments[3:5])
    upper, lower = load(False, 0), load(True, 0)
    upper_change, lower_change = build.fsub(load(False, CHANNELS), upper), build.fsub(load(True, CHANNELS), lower)
    upper = build.fadd(upper, build.fmul(right_share, upper_change))
    lower = build.fadd(lower, build.fmul(right_share, lower_change))
    change = build.fsub(lower, upper)
    level = build.fadd(upper, build.fmul(down_share, change))
    return level, upper_change, lower_change, change


def _memory(context: Any, build: Any, signature: Any, arguments: Any, kind: Any) -> Any:
    """How to load four samples of the upper row or the lower, so many steps on, and how to store four floats."""
    place, below = arguments[1:3]

    def pointer(number: int, where: Any, vector: Any) -> Any:
        array = context.make_array(signature.args[number])(context, build, arguments[number])
        return build.bitcast(build.gep(array.data, [where]), vector.as_pointer())

    def load(lower: bool, step: int) -> Any:
        where = build.add(place, below) if lower else place
        where = build.add(where, ir.Constant(where.type, step))
        return build.load(pointer(0, where, kind), align=1 if kind is BYTES else 4)

    def store(values: Any, where: Any) -> None:
        build.store(values, pointer(5, where, FLOATS), align=4)

    return load, store


def _all_four(build: Any, value: Any, vector: Any) -> Any:
    nothing = ir.Constant(vector, ir.Undefined)
    first = build.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return build.shuffle_vector(first, nothing, ir.Constant(WORDS, [0] * 4))


tilt_pixel, blend_pixel, blend_pixel_within = (cast(Blend, intrinsic(code)) for code in (_tilt, _blend, _blend_within))


LANES = 16  # of a vector
SAMPLES = 3 * LANES  # of a block: whole pixels as well as whole vectors
ROWS = 4  # of samples that are made at once, so that a weight is loaded once for all of them
MANY = ir.VectorType(ir.FloatType(), LANES)


def _copies_adder(taps: int) -> Blend:
    """A kernel that adds to a block of each of several rows so many copies of a row, each CHANNELS samples on.

    It takes (weights, place, step from copy to copy, copies, place, step from row to row, sums, place).
    """

    def adder(
        _: Any, weights: Any, weight: Any, next_weight: Any, copies: Any, copy: Any, next_row: Any, sums: Any, at: Any
    ) -> Any:
        def code(context: Any, build: Any, signature: Any, arguments: Any) -> Any:
            def pointer(number: int, where: Any, steps: int) -> Any:
                array = context.make_array(signature.args[number])(context, build, arguments[number])
                place = build.add(where, ir.Constant(where.type, steps))
                return build.bitcast(build.gep(array.data, [place]), MANY.as_pointer())

            def times(place: Any, step: Any, count: int) -> Any:
                return build.add(place, build.mul(step, ir.Constant(step.type, count)))

            for lane in range(0, SAMPLES, LANES):
                factors = [
                    build.load(pointer(0, times(arguments[1], arguments[2], tap), lane), align=4) for tap in range(taps)
                ]
                for row in range(ROWS):
                    source = times(arguments[4], arguments[5], row)
                    total = pointer(6, arguments[7], row * SAMPLES + lane)
                    summed = build.load(total, align=4)
                    products = [
                        build.fmul(factor, build.load(pointer(3, source, tap * CHANNELS + lane), align=4))
                        for tap, factor in enumerate(factors)
                    ]
                    # three are added up before they are added to the rest
                    for first in range(0, taps, 3):
                        part = products[first]
                        for product in products[first + 1 : first + 3]:
                            part = build.fadd(part, product)
                        summed = build.fadd(summed, part)
                    build.store(summed, total, align=4)
            return context.get_dummy_value()

        return types.void(weights, weight, next_weight, copies, copy, next_row, sums, at), code

    return cast(Blend, intrinsic(adder))


add_three_copies, add_four_copies, add_five_copies, add_six_copies = (_copies_adder(taps) for taps in range(3, 7))
