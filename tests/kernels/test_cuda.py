"""The same kernels on a GPU: what runs there computes the operation, and the main ones are no surrogates."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch

from roofline.kernels import availability, choose, kernels_for, make_inputs, mismatch, named_outputs, prepare, reference
from roofline.kernels.precision import fp32_products
from roofline.ops import (
    Activation,
    Attention,
    AttentionScores,
    AttentionValues,
    Embedding,
    GatedActivation,
    KVAppend,
    LayerNorm,
    Linear,
    LMHead,
    Residual,
    RMSNorm,
    RotaryEmbedding,
    ScaleShift,
    Softmax,
)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA or ROCm device"),
]

HEADS = {"batch": 2, "heads": 8, "kv_heads": 2, "head_dim": 64}
SQUARE = {"tokens": 64, "in_features": 256, "out_features": 128}

GENUINE = [
    Linear(**SQUARE),
    Linear(**SQUARE, dtype="fp32"),
    Linear(**SQUARE, dtype="fp32", compute="tf32"),
    Linear(**SQUARE, dtype="fp16", bias=True),
    LMHead(rows=4, hidden_size=256, vocab_size=512),
    Embedding(tokens=64, vocab_size=128, hidden_size=256),
    RMSNorm(tokens=64, hidden_size=256),
    RMSNorm(tokens=64, hidden_size=256, residual=True),
    LayerNorm(tokens=64, hidden_size=256),
    Softmax(rows=64, columns=256),
    Activation(tokens=64, features=256),
    GatedActivation(tokens=64, intermediate_size=256),
    Residual(tokens=64, hidden_size=256, gate=True, images=2),
    ScaleShift(tokens=64, hidden_size=256, images=2, norm=True),
    RotaryEmbedding(heads=8, kv_heads=2, head_dim=64, queries=16, cached=9, append=True),
    KVAppend(kv_heads=2, head_dim=64, queries=16, cached=9),
    Attention(**HEADS, queries=1, cached=255),
    Attention(**HEADS, queries=1, cached=255, window=100),
    Attention(**HEADS, queries=128),
    Attention(**HEADS, queries=16, cached=200),
    Attention(**HEADS, queries=64, keys=77, mask="full"),
    AttentionScores(**HEADS, queries=32, keys=64),
    AttentionValues(batch=2, heads=8, kv_heads=2, head_dim_v=64, queries=32, keys=64),
]
OTHERS = [
    Linear(**SQUARE, dtype="fp8"),
    Linear(**SQUARE, dtype="fp8-row"),
    Linear(**SQUARE, dtype="int8"),
    *(
        Linear(**SQUARE, weight_dtype=name, compute="bf16")
        for name in ("int8", "int4-g128", "int4-g128-zp", "nvfp4", "mxfp4", "mxfp8", "fp8-row")
    ),
    LMHead(rows=4, hidden_size=256, vocab_size=512, out_dtype="fp32"),
    Attention(**HEADS, queries=16, cached=200, window=50, sinks=4),
    Attention(**HEADS, queries=1, cached=255, kv_dtype="fp8-row"),
    Attention(**HEADS, queries=1, cached=255, head_dim_v=32),
    Attention(**HEADS, queries=128, dtype="fp32"),
]


@pytest.mark.parametrize("op", GENUINE, ids=lambda op: f"{op.kind}-{GENUINE.index(op)}")
def test_the_main_operations_have_a_genuine_kernel(op):
    kernel = choose(op, "cuda")
    assert kernel.surrogate is None, [
        f"{other.name}: {availability(other, op, 'cuda')}" for other in kernels_for(op.kind) if other is not kernel
    ]
    ready = prepare(op, "cuda", kernel=kernel)
    expected = reference(op, ready.operands)
    assert mismatch(op, expected, ready.outputs()) is None


@pytest.mark.parametrize("op", GENUINE + OTHERS, ids=lambda op: f"{op.kind}-{(GENUINE + OTHERS).index(op)}")
def test_what_torch_runs_on_a_gpu_computes_the_operation(op):
    ran = 0
    for kernel in kernels_for(op.kind):
        if kernel.compiled or kernel.refuses(op, torch.device("cuda")) is not None:
            continue
        operands = make_inputs(op, "cuda")
        expected = reference(op, operands)
        try:
            returned = kernel.run(op, operands)
        except Exception:  # what torch refuses on this GPU is not available, and that is no fault
            continue
        ran += 1
        assert mismatch(op, expected, named_outputs(op, operands, returned)) is None, kernel.name
    assert ran


def test_fp32_products_are_not_tf32():
    op = Linear(tokens=64, in_features=512, out_features=64, dtype="fp32")
    with fp32_products(tf32=True):
        ready = prepare(op, "cuda")
        assert mismatch(op, reference(op, ready.operands), ready.outputs()) is None


def test_a_call_does_not_wait_for_the_gpu():
    """A host synchronisation inside a timed call would stall the stream that the timer holds."""
    for op in (*GENUINE, *OTHERS):
        ready = prepare(op, "cuda")
        ready.call()
        torch.cuda.set_sync_debug_mode("error")
        try:
            ready.call()
        finally:
            torch.cuda.set_sync_debug_mode("default")
