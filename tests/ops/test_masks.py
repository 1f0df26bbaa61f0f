from __future__ import annotations

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from roofline.ops import masks

from ..truth import mask

KINDS = st.sampled_from(masks.MASKS)
SMALL = st.integers(0, 40)


def brute(queries, cached, kind, window, sinks):
    seen = mask(queries, cached, kind, window, sinks)
    return int(seen.sum()), int(seen.any(axis=0).sum())


def test_thousands_of_shapes_against_masks_built_entry_by_entry():
    random = numpy.random.default_rng(0)
    for _ in range(4000):
        queries, cached = int(random.integers(1, 40)), int(random.integers(0, 40))
        kind = masks.MASKS[random.integers(2)]
        window = int(random.integers(1, 90)) if random.random() < 0.7 else None
        sinks = int(random.integers(0, 60)) if window is not None and kind == "causal" else 0
        shape = {"mask": kind, "window": window, "sinks": sinks}
        counted = (masks.pairs(queries, cached, **shape), masks.keys_read(queries, cached, **shape))
        assert counted == brute(queries, cached, kind, window, sinks), (queries, cached, shape)


@given(st.integers(1, 40), SMALL, st.integers(1, 100))
@example(1, 0, 1)
@example(8, 5, 200)
def test_top_k_sees_as_many_as_there_are_up_to_k(queries, cached, k):
    expected = int(numpy.minimum(mask(queries, cached).sum(axis=1), k).sum())
    assert masks.top_k_pairs(queries, cached, k) == expected


@pytest.mark.parametrize(
    ("queries", "cached", "kind", "window", "sinks"),
    [
        pytest.param(7, 0, "causal", 100, 0, id="window wider than the sequence"),
        pytest.param(7, 0, "causal", 6, 0, id="one more query than the window"),
        pytest.param(1, 0, "causal", 1, 0, id="a window of one, one position"),
        pytest.param(1, 30, "causal", 8, 4, id="decode with sinks"),
        pytest.param(9, 3, "causal", 2, 5, id="more sinks than window"),
        pytest.param(9, 3, "causal", 2, 50, id="more sinks than keys"),
        pytest.param(9, 0, "full", 1, 0, id="local, itself only"),
        pytest.param(9, 4, "full", 5, 0, id="local, behind cached keys"),
        pytest.param(9, 4, "full", 99, 0, id="local, wider than the sequence"),
        pytest.param(1, 9, "full", 4, 0, id="local, one query"),
    ],
)
def test_corners(queries, cached, kind, window, sinks):
    shape = {"mask": kind, "window": window, "sinks": sinks}
    counted = (masks.pairs(queries, cached, **shape), masks.keys_read(queries, cached, **shape))
    assert counted == brute(queries, cached, kind, window, sinks)


def test_published_counts():
    assert masks.pairs(4096) == 4096 * 4097 // 2
    assert masks.pairs(512, 8192) == 4_325_632  # a chunk of 512 behind 8192
    assert masks.pairs(32768, window=4096) == 125_831_168  # Mistral's window, 0.234 of the triangle
    assert masks.pairs(1, 4095) == 4096  # decode sees itself


@given(st.integers(1, 10**6), st.integers(0, 10**12), st.integers(1, 10**6), st.integers(0, 100), KINDS)
def test_float_arrays_keep_their_digits_at_contexts_beyond_any_model(queries, cached, window, sinks, kind):
    """A triangle taken from a triangle would be off by thousands of pairs here."""
    shapes = [{"mask": kind}, {"mask": kind, "window": window}, {"window": window, "sinks": sinks}]
    for shape in shapes:
        arrays = {name: numpy.array([float(v)]) if isinstance(v, int) else v for name, v in shape.items()}
        exact = masks.pairs(queries, cached, **shape)
        as_float = masks.pairs(numpy.array([float(queries)]), numpy.array([float(cached)]), **arrays)
        assert float(as_float[0]) == pytest.approx(exact, rel=1e-12)
