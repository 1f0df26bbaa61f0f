from __future__ import annotations

import pytest

from roofline.errors import RooflineError
from roofline.models import Denoise, read_config
from roofline.models.diffusion_config import DiffusionConfig

DIT = {"kind": "diffusion-transformer", "attention": "self", "hidden_size": 64, "layers": 2, "heads": 4}
JOINT = {**DIT, "attention": "joint", "text_width": 32, "text_tokens": 7}
CROSS = {**JOINT, "attention": "cross"}
FLUX = {"_class_name": "FluxTransformer2DModel", "in_channels": 64, "num_layers": 1, "num_single_layers": 1}
SD3 = {"_class_name": "SD3Transformer2DModel", "num_attention_heads": 3, "caption_projection_dim": 192}
PIXART = {"_class_name": "PixArtTransformer2DModel"}
WAN = {"_class_name": "WanTransformer3DModel"}


def read(data, **changes) -> DiffusionConfig:
    config = read_config({**data, **changes})
    assert isinstance(config, DiffusionConfig)
    return config


def refused(data, **changes) -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        read(data, **changes)
    return caught.value


def test_what_follows_from_other_sizes():
    config = read(DIT, latent_channels=4)
    assert (config.head_dim, config.intermediate_size, config.out_channels) == (16, 256, 4)
    explicit = read(DIT, head_dim=8, intermediate_size=100, out_channels=9)
    assert (explicit.width, explicit.intermediate_size, explicit.out_channels) == (32, 100, 9)


@pytest.mark.parametrize(
    ("data", "changes", "key", "words"),
    [
        (DIT, {"kind": "unet"}, "kind", "diffusion-transformer"),
        (DIT, {"hiden_size": 3}, "hiden_size", "unknown key"),
        (DIT, {"attention": "both"}, "attention", "joint, cross, self"),
        (DIT, {"heads": 5}, "heads", "multiple of heads"),
        (DIT, {"text_width": 9}, "text_width", "has no text"),
        (DIT, {"single_layers": 1}, "single_layers", "goes with attention: joint"),
        (JOINT, {"text_width": 0}, "text_width", "needs a text_width"),
        (JOINT, {"modulation": "shared"}, "modulation", "block"),
        (JOINT, {"cross_norm": True}, "cross_norm", "cross"),
        (CROSS, {"context_pre_only": True}, "context_pre_only", "joint"),
        (CROSS, {"size_embeds": True}, "size_embeds", "multiple of 3"),
        (FLUX, {"_class_name": "UNet2DConditionModel"}, "_class_name", "supported are FluxTransformer2DModel"),
        (FLUX, {"_class_name": ["FluxTransformer2DModel"]}, "_class_name", "not supported"),
        (FLUX, {"patch_size": 2}, "patch_size", "packed"),
        (FLUX, {"num_layers": 0}, "num_layers", "at least 1"),
        (FLUX, {"guidance_embeds": "yes"}, "guidance_embeds", "true or false"),
        (FLUX, {"in_channels": 65}, "in_channels", "multiple of 4"),
        (FLUX, {"in_channels": 3}, "in_channels", "multiple of 4"),
        (FLUX, {"out_channels": 2}, "out_channels", "multiple of 4"),
        (SD3, {"dual_attention_layers": [0, 1]}, "dual_attention_layers", "second attention"),
        (SD3, {"caption_projection_dim": 100}, "caption_projection_dim", "width of the stream"),
        (SD3, {"qk_norm": "layer_norm"}, "qk_norm", "rms_norm"),
        (PIXART, {"cross_attention_dim": 100}, "cross_attention_dim", "width of the stream"),
        (PIXART, {"activation_fn": "geglu"}, "activation_fn", "MLP"),
        (WAN, {"image_dim": 1280}, "image_dim", "image-to-video"),
        (PIXART, {"use_additional_conditions": "no"}, "use_additional_conditions", "true or false"),
        (WAN, {"patch_size": 2}, "patch_size", "[frames, side, side]"),
        (WAN, {"patch_size": [1, "x", "x"]}, "patch_size", "whole number"),
    ],
)
def test_what_is_refused_and_what_is_said(data, changes, key, words):
    error = refused(data, **changes)
    assert error.key == key
    assert words in error.message
    assert len(str(error).splitlines()) == 1


def test_guidance_is_what_the_published_model_was_made_for():
    assert read(FLUX, guidance_embeds=True).guidance == "distilled"
    assert read(FLUX, guidance_embeds=False).guidance == "none"
    assert read(SD3).guidance == read(PIXART).guidance == read(WAN).guidance == read(DIT).guidance == "cfg"


def test_a_pixart_for_1024_pixels_embeds_the_size_of_the_image_unless_it_says_otherwise():
    assert read(PIXART).size_embeds
    assert not read(PIXART, sample_size=64).size_embeds
    assert not read(PIXART, use_additional_conditions=False).size_embeds


@pytest.mark.parametrize(
    ("data", "what", "key", "near"),
    [
        (DIT, {"height": 250}, "height", ("240", "256")),
        (DIT, {"width": 8}, "width", ("16",)),
        (DIT, {"frames": 4}, "frames", ("1", "5")),
        (DIT, {"text_tokens": 5}, "text_tokens", ()),
        ({**JOINT, "text_tokens": 0}, {}, "text_tokens", ()),
        ({**JOINT, "patch_frames": 2}, {"frames": 1}, "frames", ()),
    ],
)
def test_images_that_are_no_whole_number_of_patches_and_texts_that_do_not_fit(data, what, key, near):
    with pytest.raises(RooflineError) as caught:
        Denoise(**{"height": 256, "width": 256, **what}).check_with(read(data))
    assert caught.value.key == key
    assert caught.value.suggestions == near or not near
