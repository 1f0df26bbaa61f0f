"""Decoders against the modelling code of transformers, run on the meta device under torch's FLOP counter."""

from __future__ import annotations

import warnings

import pytest

from roofline.models import DecoderConfig, decoder_step, read_config
from roofline.ops.tree import parameters
from tests.models.measures import tensor_flops

torch = pytest.importorskip("torch", reason="the modelling code needs torch (extra: measure)")
transformers = pytest.importorskip("transformers", reason="the modelling code needs transformers (extra: dev)")

pytestmark = pytest.mark.slow

SIZES = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 6}
FAMILIES = {
    "llama-gqa": ("LlamaConfig", {"num_key_value_heads": 2}),
    "llama-mha-tied": ("LlamaConfig", {"tie_word_embeddings": True}),
    "llama-biased": ("LlamaConfig", {"attention_bias": True, "mlp_bias": True, "head_dim": 16}),
    "mistral": ("MistralConfig", {"num_key_value_heads": 2, "head_dim": 10, "sliding_window": None}),
    "mistral-window": ("MistralConfig", {"num_key_value_heads": 3, "sliding_window": 8}),
    "qwen2": ("Qwen2Config", {"num_key_value_heads": 2, "tie_word_embeddings": True}),
    "qwen2-window": (
        "Qwen2Config",
        {"num_key_value_heads": 2, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3Config", {"num_key_value_heads": 2, "head_dim": 16}),
    "qwen3-defaults": ("Qwen3Config", {"num_key_value_heads": 3}),
}


def real(config, batch: int, queries: int, cached: int) -> tuple[int, int]:
    """Parameters of the real model, and FLOPs of a forward pass after ``cached`` positions."""
    from torch.utils.flop_counter import FlopCounterMode

    with torch.device("meta"), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # names of arguments that newer versions change
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        past = transformers.DynamicCache(config=config)
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        for layer in range(config.num_hidden_layers if cached else 0):
            shape = (batch, config.num_key_value_heads, cached, head_dim)
            past.update(torch.empty(shape), torch.empty(shape), layer)
        with FlopCounterMode(display=False) as counter:
            model(
                input_ids=torch.zeros(batch, queries, dtype=torch.long),
                position_ids=torch.arange(cached, cached + queries).expand(batch, -1),
                past_key_values=past,
                use_cache=True,
            )
    return sum(parameter.numel() for parameter in model.parameters()), counter.get_total_flops()


@pytest.mark.parametrize("family", FAMILIES)
def test_parameters_and_matrix_flops_equal_the_real_model(family):
    cls, more = FAMILIES[family]
    published = getattr(transformers, cls)(**SIZES, **more)
    config = read_config(published.to_dict())
    assert isinstance(config, DecoderConfig)

    count, flops = real(published, batch=2, queries=1, cached=20)
    for fusion in ("serving", "none"):
        decode = decoder_step(config, "decode", batch=2, context=20, fusion=fusion)
        assert parameters(decode) == count
        assert tensor_flops(decode) == flops

    _, flops = real(published, batch=2, queries=12, cached=0)
    prefill = decoder_step(config, "prefill", batch=2, tokens=12, fusion="none")
    # eager attention does the whole square, as `fusion: none` says; all positions go through the head there
    assert tensor_flops(prefill) + 2 * 2 * 11 * config.hidden_size * config.vocab_size == flops
