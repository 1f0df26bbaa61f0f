"""Kernels made by torch.compile; each compiles for a second or two, and the first of a machine for some more."""

from __future__ import annotations

import re
from math import prod

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch
from torch._inductor.utils import run_and_get_code

from roofline.kernels import choose, fused, kernels_for, make_inputs, mismatch, named_outputs, prepare, reference
from roofline.ops import GatedActivation, LayerNorm, RMSNorm, RotaryEmbedding, ScaleShift

pytestmark = pytest.mark.slow

ROPE = RotaryEmbedding(batch=2, heads=4, kv_heads=2, head_dim=16, queries=3)
CASES = [
    RMSNorm(tokens=5, hidden_size=96),
    RMSNorm(tokens=5, hidden_size=96, residual=True),
    LayerNorm(tokens=5, hidden_size=96, residual=True),
    LayerNorm(tokens=5, hidden_size=96, residual=True, affine=False),
    GatedActivation(tokens=5, intermediate_size=48, function="gelu-tanh"),
    ScaleShift(tokens=6, hidden_size=96, images=2, norm=True),
    ROPE,
    ROPE.with_(append=True, cached=4),
]


@pytest.fixture(scope="module", autouse=True)
def compiler():
    reason = fused.compiler_missing("cpu")
    if reason is not None:
        pytest.skip(reason)


def compiled(op):
    return next(kernel for kernel in kernels_for(op.kind) if kernel.compiled)


def test_they_are_chosen_unless_compiling_is_switched_off():
    assert choose(CASES[1], "cpu").name == "compiled"
    assert choose(CASES[1], "cpu", compile=False).surrogate is not None


@pytest.mark.parametrize("op", CASES, ids=lambda op: f"{op.kind}-{CASES.index(op)}")
def test_fused_kernels_compute_the_operation_in_one_kernel(op):
    """One kernel, and no buffer as large as an operand but for outputs it returns: else it would be a surrogate."""
    operands = make_inputs(op, "cpu")
    expected = reference(op, operands)
    returned, sources = run_and_get_code(compiled(op).bind(op, operands))
    assert mismatch(op, expected, named_outputs(op, operands, returned)) is None
    source = "".join(sources)
    assert source.count("async_compile.cpp_pybinding(") == 1
    buffers = re.findall(r"empty_strided_cpu\(\(([\d, ]*)\)", source)
    rows = getattr(op, "tokens", 0)
    large = [shape for shape in buffers if prod(map(int, shape.rstrip(", ").split(", "))) > rows]
    assert len(large) == len(returned or {})


def test_copies_share_one_compiled_function(monkeypatch):
    op = GatedActivation(tokens=3, intermediate_size=24)
    calls = []
    compile_once = torch.compile
    monkeypatch.setattr(torch, "compile", lambda *args, **options: calls.append(args) or compile_once(*args, **options))
    for seed in range(3):
        ready = prepare(op, "cpu", kernel=compiled(op), seed=seed)
        assert mismatch(op, reference(op, ready.operands), ready.outputs()) is None
    assert len(calls) == 1


def test_more_shapes_than_torch_recompiles_one_function_for():
    with torch._dynamo.config.patch(recompile_limit=2):
        for tokens in range(2, 6):
            op = GatedActivation(tokens=tokens, intermediate_size=8, function="relu")
            ready = prepare(op, "cpu", kernel=compiled(op))
            assert mismatch(op, reference(op, ready.operands), ready.outputs()) is None
