"""The float64 reference against other people's definitions, as it is what kernels are judged by."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch
from torch.nn import functional

from roofline.errors import RooflineError
from roofline.kernels import make_inputs, reference
from roofline.ops import (
    Attention,
    GatedActivation,
    KVAppend,
    LayerNorm,
    Linear,
    Op,
    RMSNorm,
    RotaryEmbedding,
    ScaleShift,
    Softmax,
)


def results(op):
    operands = make_inputs(op, "cpu")
    return operands, reference(op, operands)


def test_linear_is_that_of_torch():
    inputs, outputs = results(Linear(tokens=3, in_features=5, out_features=4, bias=True, dtype="fp64"))
    assert torch.allclose(outputs["y"], functional.linear(inputs["x"], inputs["weight"], inputs["bias"]))


def test_norms_are_those_of_torch():
    inputs, outputs = results(RMSNorm(tokens=3, hidden_size=8, dtype="fp64"))
    assert torch.allclose(outputs["y"], functional.rms_norm(inputs["x"], (8,), inputs["weight"], 1e-6))
    inputs, outputs = results(LayerNorm(tokens=3, hidden_size=8, dtype="fp64"))
    assert torch.allclose(
        outputs["y"], functional.layer_norm(inputs["x"], (8,), inputs["weight"], inputs["bias"], 1e-6)
    )


def test_a_residual_is_added_before_the_norm():
    inputs, outputs = results(RMSNorm(tokens=3, hidden_size=8, dtype="fp64", residual=True))
    total = inputs["x"] + inputs["residual"]
    assert torch.equal(outputs["residual"], total)
    assert torch.allclose(outputs["y"], functional.rms_norm(total, (8,), inputs["weight"], 1e-6))


def test_modulation_is_that_of_a_diffusion_transformer():
    op = ScaleShift(tokens=6, hidden_size=4, images=2, norm=True, dtype="fp64")
    inputs, outputs = results(op)
    x = functional.layer_norm(inputs["x"].view(2, 3, 4), (4,), eps=1e-6)
    expected = x * (1 + inputs["scale"].unsqueeze(1)) + inputs["shift"].unsqueeze(1)
    assert torch.allclose(outputs["y"], expected.view(6, 4))


def test_softmax_and_gates_are_those_of_torch():
    inputs, outputs = results(Softmax(rows=3, columns=7, dtype="fp64"))
    assert torch.allclose(outputs["y"], inputs["x"].softmax(-1))
    inputs, outputs = results(GatedActivation(tokens=2, intermediate_size=3, dtype="fp64"))
    gate, up = inputs["gate_up"].chunk(2, -1)
    assert torch.allclose(outputs["y"], functional.silu(gate) * up)


@pytest.mark.parametrize("queries", [1, 4])
def test_self_attention_sees_what_the_last_positions_of_the_whole_sequence_see(queries):
    op = Attention(batch=2, heads=4, kv_heads=2, head_dim=6, queries=queries, cached=5, dtype="fp64")
    inputs, outputs = results(op)
    k, v = (inputs[name].repeat_interleave(2, 1) for name in "kv")
    all_queries = torch.cat((torch.randn(2, 4, 5, 6, dtype=torch.float64), inputs["q"]), 2)
    whole = functional.scaled_dot_product_attention(all_queries, k, v, is_causal=True)
    assert torch.allclose(outputs["out"], whole[:, :, 5:])


def test_rotations_keep_lengths_and_depend_on_the_distance_only():
    dim, positions = 8, torch.arange(6, dtype=torch.float64)
    angles = positions[:, None] * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    op = RotaryEmbedding(heads=1, head_dim=dim, queries=6, dtype="fp64")
    inputs = make_inputs(op, "cpu")
    inputs["cos_sin"] = torch.cat((angles.cos(), angles.sin()), -1)
    inputs["q"] = inputs["q"][:, :, :1].expand(1, 1, 6, dim)  # one vector at six positions
    inputs["k"] = inputs["k"][:, :, :1].expand(1, 1, 6, dim)
    outputs = reference(op, inputs)
    q, k = outputs["q_out"][0, 0], outputs["k_out"][0, 0]
    assert torch.allclose(q.norm(dim=-1), inputs["q"][0, 0].norm(dim=-1))
    products = q @ k.T
    for distance in range(-5, 6):
        along = products.diagonal(distance)
        assert torch.allclose(along, along[:1].expand_as(along))
    assert not torch.allclose(products[0, 0], products[0, 1])


def test_rotations_turn_each_pair_by_its_angle():
    op = RotaryEmbedding(heads=1, head_dim=2, queries=1, dtype="fp64")
    inputs = make_inputs(op, "cpu")
    angle = torch.tensor(0.3, dtype=torch.float64)
    inputs["cos_sin"] = torch.stack((angle.cos(), angle.sin())).view(1, 2)
    q = torch.view_as_complex(inputs["q"].view(1, 2))
    turned = torch.view_as_complex(reference(op, inputs)["q_out"].view(1, 2).contiguous())
    assert torch.allclose(turned, q * torch.exp(1j * angle))


def test_an_append_leaves_the_cache_before_it_alone():
    op = KVAppend(kv_heads=2, head_dim=4, queries=2, cached=3, dtype="fp64")
    inputs, outputs = results(op)
    assert outputs["k_cache"][:, :, :3].isnan().all()
    assert torch.equal(outputs["k_cache"][:, :, 3:], inputs["k"])


def test_an_operation_without_a_reference_is_an_error():
    class Other(Op):
        kind = "other"

    with pytest.raises(RooflineError, match="other"):
        reference(Other(), {})
