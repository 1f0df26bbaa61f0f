"""Rows of golden.csv that time a whole model, as trees: decode steps, prefills, generations and denoising."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from roofline.catalog import read_yaml, resolve
from roofline.models import DecoderConfig, Precision, decoder_step, read_config
from roofline.models.diffusion import diffusion_step
from roofline.models.diffusion_config import DiffusionConfig
from roofline.models.phases import Denoise
from roofline.ops import Node
from tests.corpus.measured import Measured, device_of
from tests.reference import Published, corpus_config, published

DECODERS = {
    "Llama-2-7B": "llama/llama-2-7b-hf",
    "LLaMA-7B": "llama/llama-2-7b-hf",  # Llama 1 and 2 of this size have the same shape
    "Llama-2-13B": "llama/Llama-2-13b-hf",
    "Llama-2-70B": "llama/Llama-2-70b-hf",
    "LLaMA-70B": "llama/Llama-2-70b-hf",
    "Llama-3-8B": "llama/Meta-Llama-3-8B",
    "Llama-3-70B": "llama/Meta-Llama-3-70B",
    "Llama-3.1-8B": "llama/Meta-Llama-3.1-8B",
    "Llama-3.1-70B": "llama/Meta-Llama-3.1-70B",
    "Qwen3-0.6B": "qwen/Qwen3-0.6B",
    "Qwen3-4B": "qwen/Qwen3-4B",
    "Qwen3-8B": "qwen/Qwen3-8B",
    "Qwen3-32B": "qwen/Qwen3-32B",
    "Qwen2.5-14B": "qwen/Qwen2.5-14B",
}
"""Names in the corpus -> folders of its configs."""

BY_SIZE = ("Llama-3.1-405B",)
"""Decoders of which the corpus has no config, but lists the sizes."""

DIFFUSERS = {"FLUX.1-dev": "flux.1-dev", "FLUX.1-schnell": "flux.1-dev", "Wan2.1-T2V-14B": "wan2.1-14b"}
NARROW_WAN = {"layers": 30, "hidden_size": 1536, "intermediate_size": 8960, "heads": 12}

NO_MODEL = {
    "Mixtral-8x7B": "experts",
    "DeepSeek-V3": "experts and latent attention",
    "DeepSeek-R1": "experts and latent attention",
    "Qwen3-30B-A3B": "experts",
    "GPT-J-6B": "parallel attention and MLP",
    "Falcon-180B": "parallel attention and MLP",
    "PaLM-540B": "parallel attention and MLP",
    "SDXL-base-1.0": "a U-Net",
}
"""Models that are not described yet; a model that comes takes its rows out of here."""

NO_DEVICE = ("RTX4080", "RTXA6000", "M3", "L20", "2x L20", "4x L20")

PRECISIONS = {
    "bf16": Precision(weights="bf16"),
    "f16": Precision(weights="fp16"),
    "fp16": Precision(weights="fp16"),
    "fp8": Precision(weights="fp8", kv="fp8", lm_head="fp8"),
    "int8-wo": Precision(weights="int8", lm_head="int8", compute="bf16"),
    # Formats with more scales than ours have (5 bits a weight, 4.5 and about 4.8, to 4.125): the bound stays one.
    "int4-g32-wo": Precision(weights="int4-g128", lm_head="int4-g128", compute="bf16"),
    "q4_0": Precision(weights="int4-g128", lm_head="int4-g128", activations="fp16", compute="fp16"),
    "q4_K_M": Precision(weights="int4-g128", lm_head="int4-g128", activations="fp16", compute="fp16"),
}


def model_rows() -> list[Published]:
    """All rows that time a model."""
    return [row for row in published() if row.category == "model"]


def reason_to_skip(row: Published) -> str | None:
    """Why a row cannot be compared; None where it can."""
    if row.shape["model"] in NO_MODEL:
        return NO_MODEL[row.shape["model"]]
    if row.hardware in NO_DEVICE:
        return "the device is not in the catalogue"
    if row.shape.get("fbcache"):
        return "a cache skips steps"
    if row.id.startswith("m-infersim-q8"):
        return "says neither batch nor length"
    return None


@cache
def models() -> dict[str, Measured]:
    """Every row that a tree of ours describes, by its id."""
    return {row.id: measured(row) for row in model_rows() if reason_to_skip(row) is None}


def measured(row: Published) -> Measured:
    """The row as a time of a tree."""
    found = device_of(row.hardware)
    assert found is not None, row.hardware
    device, count = found
    devices = max(count, row.shape.get("tp", 1), row.shape.get("gpus", 1))
    work, times = work_of(row)
    return Measured(row.id, device, work, seconds(row, devices), devices=devices, times=times)


def seconds(row: Published, devices: int) -> float:
    """The time of what ``work_of`` returns: a step, a prefill, all steps of a generation, an image."""
    shape, unit = row.shape, row.unit
    if row.metric == "latency":
        return row.value * {"ms": 1e-3, "s": 1.0}[unit]
    if row.op == "decode_e2e":
        assert unit == "tok/s" and shape["batch"] == 1
        return 1 / row.value
    if row.op == "prefill_e2e":
        return float(shape["n"]) / row.value
    rate = row.value * (devices if unit.endswith("/GPU") else 1)
    return float(shape["batch"] * shape["osl"]) / rate


def work_of(row: Published) -> tuple[Node, float]:
    """The tree, and how often it runs.

    The bytes and FLOPs of a step are linear in its context and its bound is convex, so that many steps take no less
    than as many at the mean context. Of a generation only its decode steps are charged: the prefill of one request may
    hide behind the steps of others.
    """
    shape = row.shape
    if row.op == "diffusion_e2e":
        return denoising(row), 1
    config, precision = decoder(shape["model"]), PRECISIONS[shape.get("quant", row.dtype.partition(" ")[0])]
    if row.op == "decode_e2e":
        context = (shape["n"] - 1) // 2 if "n" in shape else shape.get("prompt", 0)
        return decoder_step(config, "decode", context=context, precision=precision), 1
    if row.op == "prefill_e2e":
        return decoder_step(config, "prefill", tokens=shape.get("isl") or shape["n"], precision=precision), 1
    context = shape["isl"] + (shape["osl"] - 1) // 2
    return decoder_step(config, "decode", batch=shape["batch"], context=context, precision=precision), shape["osl"] - 1


@cache
def decoder(name: str) -> DecoderConfig:
    """The description of a decoder that the corpus names."""
    if name in BY_SIZE:
        [sizes] = [row.shape for row in published() if row.id == f"p-{name}-total"]
        return DecoderConfig(
            model_type="llama",
            hidden_size=sizes["hidden"],
            intermediate_size=sizes["inter"],
            layers=sizes["layers"],
            heads=sizes["heads"],
            kv_heads=sizes["kv_heads"],
            head_dim=sizes["hidden"] // sizes["heads"],
            vocab_size=sizes["vocab"],
        )
    config = read_config(corpus_config(DECODERS[name]))
    assert isinstance(config, DecoderConfig)
    return config


@cache
def diffuser(name: str) -> DiffusionConfig:
    """The description of a diffusion transformer that the corpus names."""
    if name == "Wan2.1-T2V-1.3B":
        return replace(diffuser("Wan2.1-T2V-14B"), **NARROW_WAN)
    if name == "Wan2.1-I2V-14B":
        return diffuser("Wan2.1-T2V-14B")  # does all that text-to-video does, and attends to the image as well
    if name == "SD3.5-Large":
        large = read_config(corpus_config("diffusion/stable-diffusion-3.5-large/transformer"))
        assert isinstance(large, DiffusionConfig)
        return large
    document = read_yaml(resolve("workloads/models", DIFFUSERS[name]))
    config = read_config(document.data, document)
    assert isinstance(config, DiffusionConfig)
    return config


def denoising(row: Published) -> Node:
    """All denoising steps; text encoder and VAE, which the times include, are left out."""
    shape = row.shape
    side = shape.get("resolution")
    what = Denoise(
        height=shape.get("height", side),
        width=shape.get("width", side),
        frames=shape.get("frames", 1),
        steps=shape["steps"],
        text_tokens=256 if shape["model"] == "FLUX.1-schnell" else None,
        guidance="cfg" if shape.get("cfg") else "distilled",
    )
    return diffusion_step(diffuser(shape["model"]), what, precision=PRECISIONS[row.dtype])
