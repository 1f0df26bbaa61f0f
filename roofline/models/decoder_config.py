"""Dense decoder-only architectures: a published ``config.json`` read into one description.

What a config leaves out is filled as the configuration classes of transformers 5.24 fill it. Keys that those classes
do not read are ignored, as there; keys that would make the model something else than what is described here are
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roofline.errors import nearest
from roofline.fields import Where, read_size, shown
from roofline.models.quantization import stored_as


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """A pre-norm decoder with RMSNorm, rotary positions and a gated MLP (Llama, Mistral, Qwen2, Qwen3).

    ``head_dim`` need not be ``hidden_size / heads``. ``tied``: the LM head is the embedding table. ``qkv_bias``,
    ``o_bias``, ``mlp_bias``: which linear layers add one. ``qk_norm``: an RMSNorm on each query and each key head.
    ``sliding_layers`` of the ``layers`` see only the last ``sliding_window`` keys. ``dtype`` is what the published
    weights are stored in (one of ours, quantisation included), None where the config does not say.
    """

    model_type: str
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab_size: int
    tied: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    activation: str = "silu"
    sliding_window: int | None = None
    sliding_layers: int = 0
    max_positions: int | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class _Family:
    """What a ``model_type`` of transformers fixes, and what its configuration class fills in.

    ``attention_bias``: None where the config's key of that name rules (default false), else hard-wired.
    """

    kv_heads: int | None
    head_dim: int | None = None
    qkv_bias: bool | None = None
    o_bias: bool | None = None
    mlp_bias: bool | None = False
    qk_norm: bool = False
    windows: str = "none"


_FAMILIES = {
    "llama": _Family(kv_heads=None, mlp_bias=None),
    "mistral": _Family(kv_heads=8, qkv_bias=False, o_bias=False, windows="all"),
    "qwen2": _Family(kv_heads=32, qkv_bias=True, o_bias=False, windows="some"),
    "qwen3": _Family(kv_heads=32, head_dim=128, qk_norm=True, windows="some"),
}
DECODERS = tuple(_FAMILIES)
"""The values of ``model_type`` that can be read."""

_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_new": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "relu": "relu",
}
_MIXTURE = "a mixture of experts, which is not supported yet: only dense models are"
_FOREIGN = {
    "num_local_experts": _MIXTURE,
    "num_experts": _MIXTURE,
    "n_routed_experts": _MIXTURE,
    "moe_intermediate_size": _MIXTURE,
    "kv_lora_rank": "latent attention, which is not supported yet",
    "text_config": "a multimodal model: give the config of its text model",
    "vision_config": "a multimodal model: give the config of its text model",
    "block_configs": "layers that differ from each other, which is not supported",
    "cross_attention_layers": "cross-attention layers, which are not supported",
    "attn_logit_softcapping": "soft-capped scores, which are not supported",
    "final_logit_softcapping": "soft-capped logits, which are not supported",
}
_KEYS = (
    "model_type", "architectures", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "vocab_size", "tie_word_embeddings", "attention_bias", "mlp_bias", "hidden_act",
    "max_position_embeddings", "sliding_window", "use_sliding_window", "max_window_layers", "layer_types", "dtype",
    "torch_dtype", "quantization_config",
)  # fmt: skip
_NO_COST = (
    "_name_or_path", "attention_dropout", "auto_map", "bos_token_id", "eos_token_id", "initializer_range",
    "pad_token_id", "pretraining_tp", "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta",
    "transformers_version", "use_cache",
)  # fmt: skip
"""Keys of published configs that change neither work nor bytes."""
CONFIG_KEYS = (*_KEYS, *_NO_COST)
"""The keys that a description inside a descriptor may have."""

_TORCH_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float64": "fp64"}


def read_decoder(
    data: Mapping[str, Any], where: Where, *, strict: bool = False, precision_given: bool = False
) -> DecoderConfig:
    """Read the ``config.json`` of a dense decoder.

    ``strict`` refuses keys that are unknown (for descriptions written by hand). ``precision_given``: whoever asks
    states the precision himself, so that how the checkpoint is quantised does not matter. Raises ``RooflineError`` at
    the key: an unsupported ``model_type``, a missing or a wrong size, and whatever makes it another kind of model.
    """
    family = _family(data, where)
    _refuse_foreign(data, where, strict)
    sizes = {
        key: _size(data, key, where)
        for key in ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
    }
    heads, layers = sizes["num_attention_heads"], sizes["num_hidden_layers"]
    kv_heads = _optional_size(data, "num_key_value_heads", where, family.kv_heads) or heads
    if heads % kv_heads:
        raise where.error(
            ("num_key_value_heads",),
            f"num_attention_heads ({heads}) must be a multiple of num_key_value_heads ({kv_heads})",
            code="bad-value",
        )
    window, sliding = _windows(data, where, family, layers)
    attention_bias = _flag(data, "attention_bias", where)
    return DecoderConfig(
        model_type=data["model_type"],
        hidden_size=sizes["hidden_size"],
        intermediate_size=sizes["intermediate_size"],
        layers=layers,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(data, where, family, sizes["hidden_size"], heads),
        vocab_size=sizes["vocab_size"],
        tied=_flag(data, "tie_word_embeddings", where),
        qkv_bias=attention_bias if family.qkv_bias is None else family.qkv_bias,
        o_bias=attention_bias if family.o_bias is None else family.o_bias,
        mlp_bias=_flag(data, "mlp_bias", where) if family.mlp_bias is None else family.mlp_bias,
        qk_norm=family.qk_norm,
        activation=_activation(data, where),
        sliding_window=window,
        sliding_layers=sliding,
        max_positions=_optional_size(data, "max_position_embeddings", where, None),
        dtype=None if precision_given else _dtype(data, where),
    )


def _family(data: Mapping[str, Any], where: Where) -> _Family:
    name = data.get("model_type")
    if name is None:
        message = f"missing key 'model_type': one of {', '.join(DECODERS)}"
        raise where.error(("model_type",), message, code="missing-key")
    if not isinstance(name, str) or name not in _FAMILIES:
        raise where.error(
            ("model_type",),
            f"model_type {shown(name)} is not supported: supported are {', '.join(DECODERS)}",
            code="unsupported-model",
        )
    return _FAMILIES[name]


def _refuse_foreign(data: Mapping[str, Any], where: Where, strict: bool) -> None:
    for key, what in _FOREIGN.items():
        if data.get(key):
            raise where.error((key,), f"{key} makes this {what}", code="unsupported-model", of="key")
    architectures = data.get("architectures") or ()
    for name in architectures if isinstance(architectures, (list, tuple)) else (architectures,):
        if not str(name).endswith("ForCausalLM"):
            raise where.error(
                ("architectures",),
                f"architecture {shown(name)} is not supported: only decoders with an LM head (...ForCausalLM)",
                code="unsupported-model",
            )
    for key in data:
        if key not in CONFIG_KEYS and (strict or _misspelt(key, data)):
            raise where.error(
                (key,),
                f"unknown key {key!r}: the keys that are read are {', '.join(_KEYS)}",
                code="unknown-key",
                of="key",
                suggestions=nearest(key, CONFIG_KEYS),
            )


def _misspelt(key: str, data: Mapping[str, Any]) -> bool:
    """Whether an unknown key must be a misspelt one that is missing: its default would be taken without a word."""
    from difflib import SequenceMatcher  # only published files with keys of their own need it

    return any(SequenceMatcher(None, key, known).ratio() > 0.9 for known in _KEYS if known not in data)


def _size(data: Mapping[str, Any], key: str, where: Where) -> int:
    if data.get(key) is None:
        near = nearest(key, [other for other in data if other not in CONFIG_KEYS])
        raise where.error((key,), f"missing key {key!r}", code="missing-key", suggestions=near)
    return read_size(key, data[key], where)


def _optional_size(data: Mapping[str, Any], key: str, where: Where, default: int | None) -> int | None:
    """A size; ``default`` where the key is missing, None where it is null."""
    if key not in data:
        return default
    return None if data[key] is None else read_size(key, data[key], where)


def _flag(data: Mapping[str, Any], key: str, where: Where) -> bool:
    value = data.get(key)
    if value is not None and not isinstance(value, bool):
        raise where.error((key,), f"{key} must be true or false, not {shown(value)}", code="bad-value")
    return bool(value)


def _head_dim(data: Mapping[str, Any], where: Where, family: _Family, hidden: int, heads: int) -> int:
    given = _optional_size(data, "head_dim", where, family.head_dim)
    if given is not None:
        return given
    if hidden % heads:
        raise where.error(
            ("num_attention_heads",),
            f"hidden_size ({hidden}) must be a multiple of num_attention_heads ({heads}) where head_dim is not given",
            code="bad-value",
        )
    return hidden // heads


def _activation(data: Mapping[str, Any], where: Where) -> str:
    name = data.get("hidden_act", "silu")
    if not isinstance(name, str) or name not in _ACTIVATIONS:
        raise where.error(
            ("hidden_act",),
            f"hidden_act must be one of {', '.join(_ACTIVATIONS)}, not {shown(name)}",
            code="bad-value",
            suggestions=nearest(str(name), _ACTIVATIONS),
        )
    return _ACTIVATIONS[name]


def _windows(data: Mapping[str, Any], where: Where, family: _Family, layers: int) -> tuple[int | None, int]:
    """The sliding window and how many layers have it.

    Mistral: all of them, 4096 where the key is missing, none where it is null. Qwen2 and Qwen3: only with
    ``use_sliding_window``, those that ``layer_types`` names, else the layers from ``max_window_layers`` on.
    """
    if family.windows == "none":
        return None, 0
    window = _optional_size(data, "sliding_window", where, 4096)
    if family.windows == "all":
        return (window, layers) if window else (None, 0)
    if not _flag(data, "use_sliding_window", where) or window is None:
        return None, 0
    kinds = data.get("layer_types")
    if kinds is not None:
        sliding = _count_sliding(kinds, where, layers)
    else:
        first = read_size("max_window_layers", data.get("max_window_layers", 28), where, 0)
        sliding = max(layers - first, 0)
    return (window, sliding) if sliding else (None, 0)


def _count_sliding(kinds: Any, where: Where, layers: int) -> int:
    allowed = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != layers:
        count = f"{len(kinds)} entries" if isinstance(kinds, list) else shown(kinds)
        raise where.error(
            ("layer_types",), f"layer_types must be a list of {layers} entries, not {count}", code="bad-value"
        )
    for index, kind in enumerate(kinds):
        if kind not in allowed:
            raise where.error(
                ("layer_types", index),
                f"layer_types must hold {' or '.join(allowed)}, not {shown(kind)}",
                code="unsupported-model",
            )
    return kinds.count("sliding_attention")


def _dtype(data: Mapping[str, Any], where: Where) -> str | None:
    """What the published weights are stored in; transformers 5 writes ``dtype``, older ones ``torch_dtype``."""
    quantised = stored_as(data.get("quantization_config"), where)
    if quantised is not None:
        return quantised
    key = "dtype" if data.get("dtype") is not None else "torch_dtype"
    name = data.get(key)
    if name is None:
        return None
    plain = str(name).removeprefix("torch.")
    if plain not in _TORCH_DTYPES:
        raise where.error(
            (key,), f"{key} must be one of {', '.join(_TORCH_DTYPES)}, not {shown(name)}", code="unknown-dtype"
        )
    return _TORCH_DTYPES[plain]
