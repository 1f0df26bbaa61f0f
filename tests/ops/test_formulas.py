"""What holds for the cost of every operation: one formula on three kinds of number, and the sanity of its results."""

from __future__ import annotations

from collections.abc import Iterator

import numpy
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline.errors import RooflineError
from roofline.ops import OPS, Attention, GatedActivation, Linear
from roofline.ops.base import op_fields, sizes_of, symbolic
from roofline.ops.sizes import bytes_of, ceil_div

from ..strategies import ops

EACH_OP = pytest.mark.parametrize("op_type", OPS.values(), ids=list(OPS))


def quantities(op) -> Iterator[tuple[str, object]]:
    """Everything that an op says about its cost."""
    yield "flops", op.flops
    yield "traffic", op.traffic_bytes
    yield "resident", op.resident_bytes
    for engine, count in op.arithmetic().items():
        yield str(engine), count
    for tensor in op.tensors():
        yield f"{tensor.name} resident", tensor.resident_bytes
        yield f"{tensor.name} traffic", tensor.traffic_bytes
        yield f"{tensor.name} elements", tensor.elements
        yield f"{tensor.name} touched", tensor.touched_bytes


def as_arrays(op):
    return op.with_(**{name: numpy.array([float(value)] * 2) for name, value in sizes_of(op).items()})


def numbers(op) -> dict:
    return dict(quantities(op))


@EACH_OP
@settings(max_examples=8)
@given(data=st.data())
def test_ints_stay_ints(op_type, data):
    op = data.draw(ops(op_type, most=10**6))
    assert {name: type(value) for name, value in quantities(op)} == {name: int for name, _ in quantities(op)}


@EACH_OP
@settings(max_examples=25)
@given(data=st.data())
def test_arrays_of_float64_agree(op_type, data):
    op = data.draw(ops(op_type, most=data.draw(st.sampled_from((9, 300, 10**5)))))
    exact, arrays = numbers(op), numbers(as_arrays(op))
    assert exact.keys() == arrays.keys()
    for name, expected in exact.items():
        value = numpy.broadcast_to(arrays[name], (2,))[0]
        if expected < 2**53:
            assert int(value) == expected, name
        else:
            assert float(value) == pytest.approx(expected, rel=1e-12), name


@EACH_OP
@settings(max_examples=8)
@given(data=st.data())
def test_the_closed_form_agrees(op_type, data):
    op = data.draw(ops(op_type, most=data.draw(st.sampled_from((9, 10**5)))))
    twin = symbolic(op)
    point = {getattr(twin, name): value for name, value in sizes_of(op).items()}
    closed = numbers(twin)
    for name, expected in numbers(op).items():
        assert sympy.sympify(closed[name]).subs(point) == expected, name


def test_counts_that_do_not_fit_in_64_bits():
    """An array of int64 would wrap here without a word."""
    op = Attention(batch=2**16, heads=128, head_dim=128, queries=2**22, cached=2**20)
    assert op.flops > 2**63
    assert float(as_arrays(op).flops[0]) == pytest.approx(op.flops, rel=1e-12)
    twin = symbolic(op)
    assert twin.flops.subs({getattr(twin, name): value for name, value in sizes_of(op).items()}) == op.flops


def test_a_million_workloads_in_one_call():
    tokens = numpy.arange(1.0, 1_000_001.0)
    op = Linear(tokens=tokens, in_features=4096, out_features=4096)
    assert op.flops.shape == op.traffic_bytes.shape == (1_000_000,)
    assert op.flops[344] == Linear(tokens=345, in_features=4096, out_features=4096).flops


@EACH_OP
@given(data=st.data())
def test_costs_are_sane(op_type, data):
    op = data.draw(ops(op_type))
    assert op.traffic_bytes > 0
    assert all(count >= 0 for count in op.arithmetic().values())
    assert op.flops > 0 or op_type.kind in ("embedding", "kv-append")
    for tensor in op.tensors():
        assert 0 < tensor.touched_bytes <= tensor.resident_bytes, tensor.name
    assert op.traffic_bytes <= 2 * op.resident_bytes
    names = [tensor.name for tensor in op.tensors()]
    assert len(set(names)) == len(names)
    writes = [tensor.writes for tensor in op.tensors() if tensor.access == "write"]
    assert writes, "every op has an output"


@EACH_OP
@given(data=st.data())
def test_a_larger_size_never_costs_less(op_type, data):
    op = data.draw(ops(op_type))
    growing = [name for name in sizes_of(op) if name not in ("heads", "kv_heads", "images", "distinct")]
    larger = op.with_(**{name: 2 * getattr(op, name) for name in growing})
    assert larger.flops >= op.flops
    assert larger.traffic_bytes >= op.traffic_bytes


@pytest.mark.parametrize("op_type", [Attention, GatedActivation])
@given(data=st.data())
def test_the_parts_of_an_unfused_op_cost_at_least_the_fused_one(op_type, data):
    op = data.draw(ops(op_type, implementation="naive"))
    parts = [part for _, part in op.parts()]
    fused = op.with_(implementation="fused")
    assert fused.parts() == ()
    assert sum(part.traffic_bytes for part in parts) > fused.traffic_bytes
    for engine, count in fused.arithmetic().items():
        assert sum(part.arithmetic().get(engine, 0) for part in parts) >= count, engine


@EACH_OP
def test_every_field_is_described(op_type):
    assert op_type.kind and op_type.about and op_type.source and op_type.__doc__
    for name, info in op_fields(op_type).items():
        assert info.doc, name
        assert info.kind != "size" or info.symbol, name


@EACH_OP
@given(data=st.data())
def test_a_size_below_its_minimum_is_refused_by_name(op_type, data):
    op = data.draw(ops(op_type))
    for name in sizes_of(op):
        with pytest.raises(RooflineError) as refused:
            op.with_(**{name: op_fields(op_type)[name].minimum - 1}).check()
        assert refused.value.key == name


@given(st.lists(st.integers(1, 300), min_size=1, max_size=3))
def test_bytes_of_formats_with_scales(shape):
    rows, columns = int(numpy.prod(shape[:-1])), shape[-1]
    half = rows * ceil_div(columns, 2)
    expected = {
        "int8": rows * (columns + 2),
        "fp8": rows * columns,
        "fp8-row": rows * (columns + 4),
        "mxfp8": rows * (columns + ceil_div(columns, 32)),
        "mxfp4": half + rows * ceil_div(columns, 32),
        "nvfp4": half + rows * ceil_div(columns, 16),
        "int4-g128": half + rows * 2 * ceil_div(columns, 128),
        "int4-g128-zp": half + rows * 4 * ceil_div(columns, 128),
    }
    assert {name: bytes_of(shape, name) for name in expected} == expected
