from __future__ import annotations

import dataclasses

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import catalog
from roofline.models import Denoise, Precision, read_config
from roofline.models.diffusion import diffusion_step
from roofline.models.diffusion_config import DiffusionConfig
from roofline.ops.tree import leaves, parameters, resident_bytes, total
from tests.models.measures import tensor_flops, truth
from tests.reference import CORPUS, NO_CORPUS, corpus_config, corpus_configs

FUSIONS = ("serving", "none")
SQUARE = Denoise(height=1024, width=1024, guidance="none")
VIDEO = Denoise(height=480, width=832, frames=81, guidance="none")


def model(name: str) -> DiffusionConfig:
    document = catalog.read_yaml(catalog.resolve("workloads/models", name))
    config = read_config(document.data, document)
    assert isinstance(config, DiffusionConfig)
    return config


def traffic(tree) -> int:
    return total(tree, lambda op: op.traffic_bytes)


# What torch's FlopCounterMode counts in one pass of the diffusers model on the meta device (torch 2.13, diffusers
# 0.42.1), and its parameters.
COUNTED = {
    "flux.1-dev": (SQUARE, 11_901_408_320, 74_384_653_418_496),
    "stable-diffusion-3-medium": (SQUARE, 2_028_328_000, 8_904_337_539_072),
    "wan2.1-14b": (VIDEO, 14_288_491_584, 1_678_370_283_192_320),
}


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("name", COUNTED)
def test_parameters_and_flops_of_the_catalogue(name, fusion):
    what, count, flops = COUNTED[name]
    tree = diffusion_step(model(name), what, fusion=fusion)
    assert parameters(tree) == count
    assert tensor_flops(tree) == flops


def test_flux_by_the_published_formula():
    # a double block 2 (S+T) 12 D^2 + 4 (S+T)^2 D + 2 12 D^2, a single one with 6 D^2 for its modulation:
    # 74.368 TFLOP; the embedders and the last layer are the rest
    tokens, width = 4096 + 512, 3072
    block = 2 * tokens * 12 * width**2 + 4 * tokens**2 * width
    formula = 19 * (block + 24 * width**2) + 38 * (block + 6 * width**2)
    tree = diffusion_step(model("flux.1-dev"), SQUARE)
    assert formula == pytest.approx(74.368e12, rel=1e-5)
    assert 0 < tensor_flops(tree) - formula < 0.0003 * formula


def test_the_class_conditional_transformer_of_the_paper():
    # Peebles and Xie, table 4: DiT-XL/2 at 256 px has 675 M parameters and 118.64 Gflops (multiply-adds there).
    # Their count of parameters includes the fixed table of positions, 256 x 1152.
    tree = diffusion_step(model("dit-xl-2"), Denoise(height=256, width=256, guidance="none"))
    assert parameters(tree) + 256 * 1152 == 675_129_632
    assert tensor_flops(tree) / 2e9 == pytest.approx(118.64, rel=2e-4)


def test_every_diffusion_model_of_the_catalogue_is_checked():
    decoders = {
        name
        for name in catalog.names("workloads/models")
        if "model_type" in catalog.read_yaml(catalog.resolve("workloads/models", name)).data
    }
    assert set(catalog.names("workloads/models")) - decoders == {*COUNTED, "dit-xl-2"}


# ---------------------------------------------------------------- guidance and steps


def test_two_passes_as_a_batch_read_the_weights_once_and_one_after_the_other_twice():
    flux = dataclasses.replace(model("flux.1-dev"), layers=2, single_layers=2)
    one, batched, apart = (
        diffusion_step(flux, dataclasses.replace(SQUARE, guidance=guidance))
        for guidance in ("distilled", "cfg", "cfg-sequential")
    )
    weights = resident_bytes(one)["weight"]
    assert tensor_flops(batched) == tensor_flops(apart) == 2 * tensor_flops(one)
    assert traffic(apart) == 2 * traffic(one)
    assert traffic(apart) - traffic(batched) == weights
    assert resident_bytes(batched)["weight"] == resident_bytes(apart)["weight"] == weights


def test_steps_repeat_the_work_and_share_the_weights():
    flux = model("flux.1-dev")
    one, many = (diffusion_step(flux, dataclasses.replace(SQUARE, steps=steps)) for steps in (1, 28))
    assert tensor_flops(many) == 28 * tensor_flops(one)
    assert tensor_flops(many) == pytest.approx(2.08e15, rel=0.002)
    assert traffic(many) == 28 * traffic(one)
    assert resident_bytes(many) == resident_bytes(one)
    assert [leaf.name for leaf in leaves(many)] == [leaf.name for leaf in leaves(one)]


def test_guidance_and_text_default_to_what_the_model_was_made_for():
    flux, sd3 = model("flux.1-dev"), model("stable-diffusion-3-medium")
    plain = Denoise(height=1024, width=1024)
    assert tensor_flops(diffusion_step(flux, plain)) == COUNTED["flux.1-dev"][2]
    assert tensor_flops(diffusion_step(sd3, plain)) == 2 * COUNTED["stable-diffusion-3-medium"][2]
    longer = dataclasses.replace(plain, text_tokens=1024)
    assert tensor_flops(diffusion_step(flux, longer)) > tensor_flops(diffusion_step(flux, plain))


def test_attention_sees_text_and_image_in_full_and_caches_nothing():
    for name, (what, _, _) in COUNTED.items():
        tree = diffusion_step(model(name), what)
        assert "kv_cache" not in resident_bytes(tree)
        assert all(leaf.op.mask == "full" for leaf in leaves(tree) if leaf.op.kind == "attention")


# ---------------------------------------------------------------- structure

joint = st.fixed_dictionaries(
    {
        "attention": st.just("joint"),
        "single_layers": st.integers(0, 3),
        "context_pre_only": st.booleans(),
        "text_width": st.integers(1, 50),
    }
)
cross = st.fixed_dictionaries(
    {
        "attention": st.just("cross"),
        "modulation": st.sampled_from(["block", "shared"]),
        "cross_norm": st.booleans(),
        "text_width": st.integers(1, 50),
    }
)
alone = st.fixed_dictionaries(
    {"attention": st.just("self"), "modulation": st.sampled_from(["block", "shared"]), "classes": st.integers(0, 9)}
)
configs = st.builds(
    lambda kind, **rest: DiffusionConfig(**kind, **rest),
    kind=st.one_of(joint, cross, alone),
    hidden_size=st.integers(8, 64),
    heads=st.integers(1, 4),
    head_dim=st.integers(1, 10).map(lambda half: 2 * half),
    layers=st.integers(1, 4),
    intermediate_size=st.integers(1, 99),
    qk_norm=st.sampled_from(["none", "head", "full"]),
    rotary=st.booleans(),
    latent_channels=st.integers(1, 16),
    patch_size=st.integers(1, 4),
    pooled_width=st.integers(0, 20),
    guidance_embeds=st.booleans(),
    text_tokens=st.just(11),
)
images = st.builds(
    lambda rows, columns, **rest: (rows, columns, rest),
    st.integers(1, 9),
    st.integers(1, 9),
    batch=st.integers(1, 4),
    frames=st.sampled_from([1, 5, 9]),
    guidance=st.sampled_from(["cfg", "cfg-sequential", "distilled", "none"]),
)


def denoise(config: DiffusionConfig, image) -> Denoise:
    rows, columns, rest = image
    side = config.vae_factor * config.patch_size
    what = Denoise(height=rows * side, width=columns * side, **rest)
    what.check_with(config)
    return what


@given(config=configs, image=images)
@settings(max_examples=60, deadline=None)
def test_fusion_changes_neither_parameters_nor_matrix_flops_and_saves_traffic(config, image):
    config.check()
    fused, apart = (diffusion_step(config, denoise(config, image), fusion=fusion) for fusion in FUSIONS)
    assert parameters(fused) == parameters(apart)
    assert resident_bytes(fused)["weight"] == resident_bytes(apart)["weight"]
    assert tensor_flops(fused) == tensor_flops(apart), "nothing is masked, so unfused attention does no more"
    assert traffic(fused) < traffic(apart)
    assert all(leaf.op.check() is None for tree in (fused, apart) for leaf in leaves(tree))


@given(config=configs, image=images)
@settings(max_examples=30, deadline=None)
def test_arrays_price_many_images_at_once(config, image):
    what = denoise(config, image)
    batches = numpy.array([1.0, 3.0, 50.0])
    many = diffusion_step(config, dataclasses.replace(what, batch=batches))
    for index, batch in enumerate(batches):
        one = diffusion_step(config, dataclasses.replace(what, batch=int(batch)))
        assert traffic(many)[index] == traffic(one)
        assert tensor_flops(many)[index] == tensor_flops(one)


def test_narrow_weights_are_those_of_every_linear_layer():
    tree = diffusion_step(model("flux.1-dev"), SQUARE, precision=Precision(weights="fp8"))
    assert {str(engine) for leaf in leaves(tree) for engine in leaf.op.arithmetic() if engine.unit == "tensor"} == {
        "tensor:fp8",
        "tensor:bf16",  # attention computes in the dtype of the stream
    }
    assert resident_bytes(tree)["weight"] == pytest.approx(11_901_408_320, rel=0.001)


# ---------------------------------------------------------------- ground truth of the corpus

READABLE = [
    f"diffusion/{name}/transformer"
    for name in (
        "FLUX.1-dev",
        "FLUX.1-schnell",
        "stable-diffusion-3-medium",
        "stable-diffusion-3.5-large",
        "PixArt-XL-2-1024-MS",
        "Wan2.1-T2V-14B",
    )
]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
@pytest.mark.parametrize("name", READABLE)
def test_parameters_and_flops_are_those_of_the_real_model(name):
    assert name in corpus_configs("diffusion/*/transformer")
    config = read_config(corpus_config(name))
    [(_, count)] = truth()[name, "params_total"]
    rows = truth()[name, "denoise_step_flops"]
    assert rows
    for shape, flops in rows:
        height, width = shape["pixels"]
        what = Denoise(batch=shape["batch"], height=height, width=width, frames=shape.get("frames", 1), guidance="none")
        tree = diffusion_step(config, what)
        assert parameters(tree) == count
        assert tensor_flops(tree) == flops
