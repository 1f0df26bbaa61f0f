"""Diffusion transformers against the modelling code of diffusers, run on the meta device under the FLOP counter."""

from __future__ import annotations

import json

import pytest

from roofline.models import Denoise, read_config
from roofline.models.diffusion import diffusion_step
from roofline.ops.tree import parameters
from tests.models.measures import tensor_flops

torch = pytest.importorskip("torch", reason="the modelling code needs torch (extra: measure)")
diffusers = pytest.importorskip("diffusers", reason="the modelling code needs diffusers (extra: dev)")

pytestmark = pytest.mark.slow

HEADS = {"num_attention_heads": 3, "attention_head_dim": 32}
IMAGES, TEXT, SIDE = 2, 7, 16  # SIDE: latent positions along a side, 128 pixels


def counted(model, **inputs) -> tuple[int, int]:
    """Parameters and the FLOPs of one pass over IMAGES images."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.eval()(**inputs)
    return sum(parameter.numel() for parameter in model.parameters()), counter.get_total_flops()


def described(model, **what):
    config = read_config(json.loads(model.to_json_string()))
    sizes = {"height": 8 * SIDE, "width": 8 * SIDE, "batch": IMAGES, "text_tokens": TEXT, "guidance": "none", **what}
    image = Denoise(**sizes)
    image.check_with(config)
    return [diffusion_step(config, image, fusion=fusion) for fusion in ("serving", "none")]


def agree(trees, truth) -> None:
    for tree in trees:
        assert (parameters(tree), tensor_flops(tree)) == truth


@pytest.mark.parametrize("guidance_embeds", [True, False])
def test_flux(guidance_embeds):
    with torch.device("meta"):
        model = diffusers.FluxTransformer2DModel(
            in_channels=64,
            num_layers=2,
            num_single_layers=3,
            joint_attention_dim=40,
            pooled_projection_dim=24,
            guidance_embeds=guidance_embeds,
            axes_dims_rope=(8, 12, 12),
            **HEADS,
        )
        truth = counted(
            model,
            hidden_states=torch.empty(IMAGES, SIDE * SIDE // 4, 64),
            encoder_hidden_states=torch.empty(IMAGES, TEXT, 40),
            pooled_projections=torch.empty(IMAGES, 24),
            timestep=torch.empty(IMAGES),
            guidance=torch.empty(IMAGES) if guidance_embeds else None,
            img_ids=torch.empty(SIDE * SIDE // 4, 3),
            txt_ids=torch.empty(TEXT, 3),
        )
    agree(described(model), truth)


@pytest.mark.parametrize("qk_norm", [None, "rms_norm"])
def test_stable_diffusion_3(qk_norm):
    with torch.device("meta"):
        model = diffusers.SD3Transformer2DModel(
            num_layers=3,
            joint_attention_dim=40,
            caption_projection_dim=96,
            pooled_projection_dim=24,
            pos_embed_max_size=SIDE,
            qk_norm=qk_norm,
            **HEADS,
        )
        truth = counted(
            model,
            hidden_states=torch.empty(IMAGES, 16, SIDE, SIDE),
            encoder_hidden_states=torch.empty(IMAGES, TEXT, 40),
            pooled_projections=torch.empty(IMAGES, 24),
            timestep=torch.empty(IMAGES),
        )
    agree(described(model), truth)


@pytest.mark.parametrize("size_embeds", [True, False])
def test_pixart(size_embeds):
    with torch.device("meta"):
        model = diffusers.PixArtTransformer2DModel(
            num_layers=2,
            cross_attention_dim=96,
            caption_channels=40,
            sample_size=SIDE,
            use_additional_conditions=size_embeds,
            **HEADS,
        )
        sizes = {"resolution": torch.empty(IMAGES, 2), "aspect_ratio": torch.empty(IMAGES, 1)}
        truth = counted(
            model,
            hidden_states=torch.empty(IMAGES, 4, SIDE, SIDE),
            encoder_hidden_states=torch.empty(IMAGES, TEXT, 40),
            timestep=torch.empty(IMAGES),
            added_cond_kwargs=sizes if size_embeds else {"resolution": None, "aspect_ratio": None},
        )
    agree(described(model), truth)


def test_wan():
    with torch.device("meta"):
        model = diffusers.WanTransformer3DModel(num_layers=2, ffn_dim=200, text_dim=40, rope_max_seq_len=64, **HEADS)
        truth = counted(
            model,
            hidden_states=torch.empty(IMAGES, 16, 3, SIDE, SIDE),
            encoder_hidden_states=torch.empty(IMAGES, TEXT, 40),
            timestep=torch.empty(IMAGES),
        )
    agree(described(model, frames=9), truth)


def test_class_conditional_dit_differs_by_its_repeated_embedders_only():
    """diffusers gives every block a timestep and label embedder of its own; the paper's model has one for all."""
    layers, width, classes = 3, 96, 10
    with torch.device("meta"):
        model = diffusers.DiTTransformer2DModel(
            num_layers=layers, sample_size=SIDE, in_channels=4, out_channels=8, num_embeds_ada_norm=classes, **HEADS
        )
        truth = counted(
            model,
            hidden_states=torch.empty(IMAGES, 4, SIDE, SIDE),
            timestep=torch.zeros(IMAGES, dtype=torch.long),
            class_labels=torch.zeros(IMAGES, dtype=torch.long),
        )
    config = read_config(
        {
            "kind": "diffusion-transformer",
            "attention": "self",
            "hidden_size": width,
            "layers": layers,
            "heads": 3,
            "latent_channels": 4,
            "out_channels": 8,
            "classes": classes + 1,
        }
    )
    tree = diffusion_step(config, Denoise(height=8 * SIDE, width=8 * SIDE, batch=IMAGES, guidance="none"))
    embedder = 256 * width + width + width * width + width
    table = (classes + 1) * width
    # one embedder for each block in place of one; its two linear layers run once a block, and once more at the end
    assert truth[0] - parameters(tree) == (layers - 1) * (embedder + table)
    assert truth[1] - tensor_flops(tree) == layers * 2 * IMAGES * (256 * width + width * width)
