"""Every formula against torch: FLOPs as torch counts them, bytes as they are seen to move, values in float64."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from roofline.kernels import NotRunnable, kernels_for, make_inputs, mismatch, named_outputs, reference, storage_bytes
from roofline.kernels.attention import mask_of, pattern
from roofline.ops import (
    OPS,
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
    Multiply,
    Residual,
    RMSNorm,
    RotaryEmbedding,
    ScaleShift,
    Softmax,
)

from ..strategies import FLOATS, ops
from ..truth import counted_flops, mask, temporary_bytes, tensor_flops, touched_bytes

CPU = torch.device("cpu")
EACH_OP = pytest.mark.parametrize("op_type", OPS.values(), ids=list(OPS))


def kernel_named(op, name):
    return next(kernel for kernel in kernels_for(op.kind) if kernel.name == name)


def runs(op):
    """(kernel, operands, outputs) of every kernel that this torch runs, those that compile left to their own test."""
    found = []
    for kernel in kernels_for(op.kind):
        if kernel.compiled or kernel.refuses(op, CPU) is not None:
            continue
        operands = make_inputs(op, "cpu")
        try:
            found.append((kernel, operands, kernel.run(op, operands)))
        except NotRunnable:
            continue
        except (RuntimeError, NotImplementedError):
            assert kernel.name == "mm-wider", f"torch does not run {kernel.name} on {op}"
    assert found, f"no kernel runs {op}"
    return found


# FLOPs


@pytest.mark.parametrize(
    ("op_type", "name"), [(Linear, "mm"), (LMHead, "mm"), (AttentionScores, "baddbmm"), (AttentionValues, "bmm")]
)
@given(data=st.data())
def test_matmul_flops_of_plain_dtypes(op_type, name, data):
    dtype = data.draw(st.sampled_from(FLOATS))
    op = data.draw(ops(op_type, **dict.fromkeys(_storage_fields(op_type), dtype), **_no_compute(op_type)))
    call = kernel_named(op, name).bind(op, make_inputs(op, "cpu"))
    assert counted_flops(call) == tensor_flops(op)


def _storage_fields(op_type):
    return [name for name in ("dtype", "weight_dtype", "out_dtype", "kv_dtype") if name in op_type.__dataclass_fields__]


def _no_compute(op_type):
    return {"compute": None} if "compute" in op_type.__dataclass_fields__ else {}


@given(ops(Linear, dtypes=("fp8",), out_dtype="bf16", compute=None))
def test_matmul_flops_of_fp8(op):
    call = kernel_named(op, "scaled-mm").bind(op, make_inputs(op, "cpu"))
    assert counted_flops(call) == tensor_flops(op)


@pytest.mark.parametrize("weight_dtype", ["int8", "int4-g128", "int4-g128-zp", "nvfp4", "mxfp4", "mxfp8", "fp8-row"])
@settings(max_examples=5)
@given(data=st.data())
def test_matmul_flops_of_unpacked_weights(weight_dtype, data):
    """torch counts none for its weight-only kernels, so the product after unpacking is counted."""
    op = data.draw(ops(Linear, dtype="bf16", out_dtype="bf16", weight_dtype=weight_dtype, compute="bf16"))
    call = kernel_named(op, "converted").bind(op, make_inputs(op, "cpu"))
    assert counted_flops(call) == tensor_flops(op)


@given(ops(Attention, dtypes=("fp32",), mask="full", window=None, implementation="fused"))
def test_attention_flops_where_every_key_is_seen(op):
    """torch counts none for fused attention on a CPU, so its own unfused path is counted; it knows no masks."""
    operands = make_inputs(op, "cpu")
    q, k, v = (operands[name] for name in "qkv")

    def call():
        with sdpa_kernel(SDPBackend.MATH):
            scaled_dot_product_attention(q, k, v, enable_gqa=op.heads != op.kv_heads)

    assert counted_flops(call) == tensor_flops(op)


@given(ops(Attention, dtypes=("fp32",)))
def test_masked_attention_flops_are_the_visible_share_of_the_square(op):
    operands = make_inputs(op, "cpu")
    square = counted_flops(kernel_named(op, "unfused").bind(op, operands))
    seen = int(mask_of(op, CPU).sum())
    assert square * seen == tensor_flops(op) * op.queries * op.all_keys


@pytest.mark.parametrize(
    "kind", sorted(OPS.keys() - {"linear", "lm-head", "attention", "attention-scores", "attention-values"})
)
@given(data=st.data())
def test_ops_without_products_have_no_tensor_flops(kind, data):
    op = data.draw(ops(OPS[kind], dtypes=("fp32",)))
    assert tensor_flops(op) == 0
    assert counted_flops(lambda: runs(op)) == 0


# bytes


@EACH_OP
@settings(max_examples=60)
@given(data=st.data())
def test_resident_bytes_are_the_storage_handed_to_the_kernel(op_type, data):
    op = data.draw(ops(op_type, most=data.draw(st.sampled_from((7, 150)))))
    operands = make_inputs(op, "cpu")
    assert list(operands) == [tensor.name for tensor in op.tensors()]
    for tensor in op.tensors():
        assert storage_bytes(operands[tensor.name]) == tensor.resident_bytes, tensor.name
        assert tuple(operands[tensor.name].shape) == tensor.shape
    assert storage_bytes(operands.values()) == op.resident_bytes


@EACH_OP
@given(data=st.data())
def test_traffic_is_what_kernels_are_seen_to_touch(op_type, data):
    op = data.draw(ops(op_type, dtypes=FLOATS))
    declared = {tensor.name: tensor.traffic_bytes for tensor in op.tensors()}
    for kernel, _, _ in runs(op):
        if not _reads_everything(kernel, op):
            assert touched_bytes(op, kernel) == declared, kernel.name


def _reads_everything(kernel, op) -> bool:
    """A mask hides keys from the result, not from a kernel that computes the whole square."""
    return isinstance(op, Attention) and kernel.surrogate is not None and op.keys_read < op.all_keys


@settings(max_examples=30)
@given(ops(Linear, dtypes=("int8", "nvfp4", "mxfp8", "int4-g128-zp", "fp8-row"), compute="bf16"))
def test_traffic_of_formats_with_scales(op):
    declared = {tensor.name: tensor.traffic_bytes for tensor in op.tensors()}
    assert touched_bytes(op, kernel_named(op, "converted")) == declared


LARGE = [
    Linear(tokens=64, in_features=256, out_features=256, bias=True),
    Linear(tokens=8, in_features=256, out_features=256, weight_dtype="int8", compute="bf16"),
    Linear(tokens=8, in_features=256, out_features=256, weight_dtype="int4-g128", compute="bf16"),
    Linear(tokens=64, in_features=256, out_features=256, dtype="fp8"),
    Linear(tokens=64, in_features=256, out_features=256, dtype="int8"),
    LMHead(rows=8, hidden_size=256, vocab_size=512),
    Embedding(tokens=64, vocab_size=128, hidden_size=256),
    RMSNorm(tokens=64, hidden_size=256),
    LayerNorm(tokens=64, hidden_size=256),
    LayerNorm(tokens=64, hidden_size=256, residual=True),
    Softmax(rows=64, columns=256),
    Activation(tokens=64, features=256),
    GatedActivation(tokens=64, intermediate_size=256),
    Multiply(tokens=64, features=256),
    Residual(tokens=64, hidden_size=256, gate=True, images=2),
    ScaleShift(tokens=64, hidden_size=256, images=2),
    ScaleShift(tokens=64, hidden_size=256, images=1, norm=True),
    ScaleShift(tokens=64, hidden_size=256, images=2, norm=True),
    RotaryEmbedding(heads=8, kv_heads=2, head_dim=64, queries=32),
    KVAppend(kv_heads=4, head_dim=64, queries=32, cached=32, kv_dtype="fp8"),
    Attention(heads=8, kv_heads=2, head_dim=64, queries=128),
    Attention(heads=8, kv_heads=2, head_dim=64, queries=128, mask="full"),
    Attention(heads=8, kv_heads=2, head_dim=64, queries=1, cached=255),
    Attention(heads=8, kv_heads=2, head_dim=64, queries=1, cached=255, window=100),
    Attention(heads=8, kv_heads=2, head_dim=64, queries=16, cached=512),
    AttentionScores(heads=8, kv_heads=2, head_dim=64, queries=64, keys=64),
    AttentionValues(heads=8, kv_heads=2, head_dim_v=64, queries=64, keys=64),
]


@pytest.mark.parametrize("op", LARGE, ids=lambda op: f"{op.kind}-{LARGE.index(op)}")
def test_kernels_that_are_no_surrogate_move_little_that_is_not_charged(op):
    """At most a sixth of the traffic goes through storage of their own; a surrogate may do what it likes."""
    for kernel, _, _ in runs(op):
        if kernel.surrogate is None:
            assert 6 * temporary_bytes(op, kernel) <= op.traffic_bytes, kernel.name


# values


@EACH_OP
@settings(max_examples=40)
@given(data=st.data())
def test_every_kernel_computes_the_operation(op_type, data):
    op = data.draw(ops(op_type, dtypes=FLOATS))
    _check_kernels(op)


@EACH_OP
@settings(max_examples=12)
@given(data=st.data())
def test_every_kernel_computes_the_operation_in_any_storage_format(op_type, data):
    _check_kernels(data.draw(ops(op_type)))


NARROW_PRODUCTS = [
    *(({"weight_dtype": name, "compute": "bf16"}, "weight-int4") for name in ("int4-g128", "int4-g128-zp")),
    ({"weight_dtype": "int8", "compute": "bf16"}, "weight-int8"),
    ({"weight_dtype": "int8", "dtype": "fp16", "compute": "fp16"}, "weight-int8"),
    ({"dtype": "fp8"}, "scaled-mm"),
    ({"dtype": "fp8-row"}, "scaled-mm"),
    ({"dtype": "fp8", "out_dtype": "fp32"}, "scaled-mm"),
    ({"dtype": "int8"}, "int-mm"),
]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tokens", [1, 5, 33])
@pytest.mark.parametrize(("dtypes", "name"), NARROW_PRODUCTS)
def test_products_of_narrow_formats(dtypes, name, tokens, bias):
    op = Linear(tokens=tokens, in_features=256, out_features=48, bias=bias, **dtypes)
    assert name in [kernel.name for kernel, _, _ in runs(op)]
    _check_kernels(op)


@pytest.mark.parametrize("op", LARGE, ids=lambda op: f"{op.kind}-{LARGE.index(op)}")
def test_every_kernel_computes_a_larger_operation(op):
    _check_kernels(op)


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("head_dim_v", [8, 4])
@pytest.mark.parametrize(("queries", "cached"), [(1, 9), (9, 0), (4, 7)], ids=["decode", "prompt", "chunk"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_of_each_phase(dtype, queries, cached, head_dim_v, window):
    """Groups of 3 query heads, so that a kernel that mixes up heads of a group is caught."""
    shape = {"batch": 2, "heads": 6, "kv_heads": 2, "head_dim": 8, "head_dim_v": head_dim_v}
    for mask_name, sinks in (("causal", 0), ("causal", 2 if window else 0), ("full", 0)):
        phase = {"queries": queries, "cached": cached, "mask": mask_name, "window": window, "sinks": sinks}
        _check_kernels(Attention(**shape, **phase, dtype=dtype))


def _check_kernels(op) -> None:
    expected = reference(op, make_inputs(op, "cpu"))
    for kernel, operands, returned in runs(op):
        outputs = named_outputs(op, operands, returned)
        assert mismatch(op, expected, outputs) is None, kernel.name
        for tensor in op.tensors():
            if tensor.writes:
                assert tuple(outputs[tensor.name].shape) == tensor.shape


@settings(max_examples=200)
@given(ops(Attention, dtypes=("fp32",)))
def test_the_mask_of_the_kernels_is_the_one_that_is_counted(op):
    seen = mask_of(op, CPU).numpy()
    if op.keys is None:
        assert (seen == mask(op.queries, op.cached, op.mask, op.window, op.sinks)).all()
    assert seen.sum() == op.pairs
    assert seen.any(axis=0).sum() == op.keys_read
    everything = {"all": True, "square": False, "chunk": False, "band": False, "tail": False}[pattern(op)]
    assert seen.all() == everything or op.queries == op.keys_read == 1
