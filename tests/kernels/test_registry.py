from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch

from roofline.errors import RooflineError
from roofline.kernels import Kernel, availability, choose, kernels_for, mismatch, prepare, reference, registry
from roofline.kernels.registry import shrunk
from roofline.ops import (
    OPS,
    Attention,
    Embedding,
    KVAppend,
    Linear,
    LMHead,
    RMSNorm,
    ScaleShift,
    Softmax,
)

LINEAR = Linear(tokens=4, in_features=256, out_features=16)
DECODE = Attention(batch=2, heads=8, kv_heads=2, head_dim=16, queries=1, cached=40)


@pytest.mark.parametrize("kind", OPS)
def test_every_op_has_kernels_the_genuine_ones_first(kind):
    kernels = kernels_for(kind)
    assert kernels
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    surrogates = [kernel.surrogate is not None for kernel in kernels]
    assert surrogates == sorted(surrogates)
    assert all(kernel.about for kernel in kernels)


def test_every_kernel_is_of_an_op():
    assert {kernel.kind for kernel in registry._KERNELS} == set(OPS)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (LINEAR, "mm"),
        (Linear(tokens=4, in_features=256, out_features=16, dtype="fp8"), "scaled-mm"),
        (Linear(tokens=4, in_features=256, out_features=16, weight_dtype="int8", compute="bf16"), "weight-int8"),
        (Linear(tokens=4, in_features=256, out_features=16, weight_dtype="int4-g128", compute="bf16"), "weight-int4"),
        (Linear(tokens=4, in_features=255, out_features=16, weight_dtype="int4-g128", compute="bf16"), "converted"),
        (Linear(tokens=4, in_features=256, out_features=16, weight_dtype="nvfp4", compute="bf16"), "converted"),
        (Linear(tokens=4, in_features=256, out_features=16, dtype="int8"), "int-mm"),
        (LMHead(rows=2, hidden_size=8, vocab_size=30, out_dtype="fp32"), "converted"),
        (Embedding(tokens=4, vocab_size=9, hidden_size=8), "index-select"),
        (Softmax(rows=2, columns=9), "softmax"),
        (KVAppend(kv_heads=2, head_dim=8, queries=1, kv_dtype="fp8"), "append"),
        (KVAppend(kv_heads=2, head_dim=8, queries=1, kv_dtype="int8"), "converted"),
        (DECODE, "sdpa"),
        (DECODE.with_(window=5), "sdpa"),
        (DECODE.with_(window=5, sinks=2), "sdpa-mask"),
        (DECODE.with_(head_dim_v=8), "unfused"),
        (DECODE.with_(kv_dtype="fp8"), "converted"),
        (DECODE.with_(queries=4), "sdpa-split"),
        (DECODE.with_(queries=4, cached=0), "sdpa"),
        (DECODE.with_(queries=4, cached=0, keys=9), "sdpa"),
        (DECODE.with_(queries=4, cached=0, window=2), "sdpa-mask"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_chosen_on_a_cpu(op, name):
    assert choose(op, "cpu", compile=False).name == name


def test_a_kernel_is_chosen_by_name():
    assert choose(DECODE, "cpu", "unfused").name == "unfused"


def test_an_unknown_name_is_an_error_with_the_nearest():
    with pytest.raises(RooflineError) as refused:
        choose(DECODE, "cpu", "sdpa-maks")
    assert (refused.value.code, refused.value.suggestions[0]) == ("unknown-kernel", "sdpa-mask")


def test_a_kernel_that_does_not_cover_the_op_says_why():
    with pytest.raises(RooflineError, match="top-left") as refused:
        choose(DECODE.with_(queries=4), "cpu", "sdpa")
    assert refused.value.code == "no-kernel"


def test_where_nothing_runs_every_reason_is_given():
    op = Linear(tokens=4, in_features=8, out_features=8, dtype="fp32", compute="tf32")
    with pytest.raises(RooflineError, match=r"mm: a CPU does not compute in tf32; .*; converted: ") as refused:
        choose(op, "cpu")
    assert refused.value.code == "no-kernel"


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_a_device_that_is_not_there():
    with pytest.raises(RooflineError, match="no CUDA"):
        choose(LINEAR, "cuda")


def test_what_torch_refuses_is_found_by_trying():
    """torch.mm(out_dtype=) exists and is for CUDA only."""
    kernel = next(kernel for kernel in kernels_for("lm-head") if kernel.name == "mm-wider")
    op = LMHead(rows=2, hidden_size=8, vocab_size=30, out_dtype="fp32")
    reason = availability(kernel, op, "cpu")
    assert torch.cuda.is_available() or reason.startswith("raises NotImplementedError: ")


def broken(op, operands):
    def call():
        operands["y"].fill_(1.0)

    return call


def test_a_kernel_that_computes_something_else_is_not_available():
    kernel = Kernel("broken", "linear", broken, "fills", lambda op, device: None)
    assert availability(kernel, LINEAR, "cpu").startswith("computes something else on this device: y is 1")


def test_a_small_op_keeps_what_kernels_depend_on():
    op = Linear(tokens=4097, in_features=14336, out_features=4100, weight_dtype="int4-g128", compute="bf16")
    assert shrunk(op) == op.with_(tokens=129, in_features=128, out_features=132)
    decode = Attention(batch=64, heads=32, kv_heads=8, head_dim=128, queries=1, cached=8192)
    assert shrunk(decode) == decode.with_(batch=2, cached=128)
    odd = ScaleShift(tokens=900, hidden_size=512, images=9)
    assert shrunk(odd) == odd  # no smaller rows fit nine images


@pytest.mark.parametrize("op", [LINEAR, DECODE, RMSNorm(tokens=4, hidden_size=32)], ids=["linear", "attention", "norm"])
def test_what_is_prepared_can_be_called_again_and_again(op):
    ready = prepare(op, "cpu", kernel=choose(op, "cpu", compile=False), seed=3)
    expected = reference(op, ready.operands)
    for _ in range(3):
        assert mismatch(op, expected, ready.outputs()) is None
    assert ready.bytes == op.resident_bytes


def test_copies_have_their_own_operands():
    first, second = (prepare(LINEAR, "cpu", seed=seed) for seed in (0, 1))
    assert first.kernel is second.kernel
    assert first.operands["weight"].data_ptr() != second.operands["weight"].data_ptr()
    before = first.outputs()["y"].clone()
    second.call()
    assert torch.equal(first.operands["y"], before)


def test_operands_can_be_shared():
    first = prepare(LINEAR, "cpu")
    second = prepare(LINEAR, "cpu", seed=1, given={"weight": first.operands["weight"]})
    assert second.operands["weight"] is first.operands["weight"]
    assert second.operands["x"] is not first.operands["x"]
    assert mismatch(LINEAR, reference(LINEAR, second.operands), second.outputs()) is None


def test_outputs_that_can_be_are_written_in_place():
    ready = prepare(LINEAR, "cpu")
    assert not ready.kernel.fresh
    assert ready.call() is None
    assert not ready.operands["y"].isnan().any()


def test_a_kernel_that_cannot_be_bound_is_an_error():
    kernel = next(kernel for kernel in kernels_for("attention") if kernel.name == "sdpa")
    with pytest.raises(RooflineError, match="unfused math path"):
        prepare(DECODE.with_(head_dim_v=8), "cpu", kernel=kernel)


def test_kernels_and_ops_are_remembered():
    calls = itertools.count()

    def bind(op, operands):
        next(calls)
        return broken(op, operands)

    kernel = Kernel("counting", "linear", bind, "counts", lambda op, device: None)
    for tokens in (512, 1024, 512):
        availability(kernel, LINEAR.with_(tokens=tokens), "cpu")
    assert next(calls) == 1
