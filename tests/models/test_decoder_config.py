from __future__ import annotations

import pytest

from roofline.errors import RooflineError
from roofline.models import DecoderConfig, read_config
from tests.reference import CORPUS, NO_CORPUS, corpus_config, corpus_configs

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}


def read(**changes) -> DecoderConfig:
    return read_config({key: value for key, value in {**LLAMA, **changes}.items() if value != "absent"})


def refused(**changes) -> RooflineError:
    with pytest.raises(RooflineError) as caught:
        read(**changes)
    assert caught.value.exit_code == 2
    return caught.value


def test_a_llama():
    assert read(tie_word_embeddings=True, max_position_embeddings=2048, torch_dtype="float16") == DecoderConfig(
        model_type="llama",
        hidden_size=64,
        intermediate_size=160,
        layers=4,
        heads=8,
        kv_heads=2,
        head_dim=8,
        vocab_size=100,
        tied=True,
        max_positions=2048,
        dtype="fp16",
    )


def test_head_dim_is_taken_where_it_is_given_and_is_128_in_qwen3():
    assert read(head_dim=32).head_dim == 32
    assert read(head_dim=None).head_dim == 8
    assert read(model_type="qwen2").head_dim == 8
    assert read(model_type="qwen3").head_dim == 128


@pytest.mark.parametrize(
    ("model_type", "missing", "null"), [("llama", 8, 8), ("mistral", 8, 8), ("qwen2", 32, 8), ("qwen3", 32, 8)]
)
def test_kv_heads_follow_the_configuration_class(model_type, missing, null):
    heads = 32 if missing == 32 else 8
    sizes = {"model_type": model_type, "num_attention_heads": heads}
    assert read(**sizes, num_key_value_heads="absent").kv_heads == missing
    assert read(**sizes, num_key_value_heads=None).kv_heads == heads
    assert read(**sizes, num_key_value_heads=4).kv_heads == 4


@pytest.mark.parametrize(
    ("model_type", "given", "qkv", "output", "mlp", "qk_norm"),
    [
        ("llama", {}, False, False, False, False),
        ("llama", {"attention_bias": True, "mlp_bias": True}, True, True, True, False),
        ("mistral", {"attention_bias": True, "mlp_bias": True}, False, False, False, False),
        ("qwen2", {}, True, False, False, False),
        ("qwen2", {"attention_bias": False}, True, False, False, False),
        ("qwen3", {}, False, False, False, True),
        ("qwen3", {"attention_bias": True}, True, True, False, True),
    ],
)
def test_biases_and_norms_are_those_of_the_modelling_code(model_type, given, qkv, output, mlp, qk_norm):
    config = read(model_type=model_type, **given)
    assert (config.qkv_bias, config.o_bias, config.mlp_bias, config.qk_norm) == (qkv, output, mlp, qk_norm)


@pytest.mark.parametrize(
    ("given", "window", "sliding"),
    [
        ({"model_type": "mistral"}, 4096, 4),
        ({"model_type": "mistral", "sliding_window": None}, None, 0),
        ({"model_type": "mistral", "sliding_window": 16}, 16, 4),
        ({"model_type": "qwen2", "sliding_window": 16}, None, 0),
        ({"model_type": "qwen2", "sliding_window": 16, "use_sliding_window": True, "max_window_layers": 3}, 16, 1),
        ({"model_type": "qwen2", "use_sliding_window": True}, None, 0),
        ({"model_type": "qwen3", "use_sliding_window": True, "max_window_layers": 0}, 4096, 4),
        ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": None}, None, 0),
        (
            {
                "model_type": "qwen3",
                "use_sliding_window": True,
                "sliding_window": 16,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
            },
            16,
            2,
        ),
    ],
)
def test_sliding_windows(given, window, sliding):
    config = read(**given)
    assert (config.sliding_window, config.sliding_layers) == (window, sliding)


def test_both_schemas_of_the_dtype():
    assert read(dtype="bfloat16").dtype == read(torch_dtype="torch.bfloat16").dtype == "bf16"
    assert read(dtype=None, torch_dtype="float32").dtype == "fp32"
    assert read().dtype is None


def test_rope_in_either_schema_changes_nothing():
    scaled = {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "rope_theta": 5e5}
    assert read(**scaled) == read(rope_parameters={"rope_type": "default", "rope_theta": 1e4}) == read()


def test_how_a_checkpoint_is_quantised_is_its_dtype_unless_the_precision_is_stated():
    quantised = {"quantization_config": {"quant_method": "fp8"}}
    assert read(torch_dtype="bfloat16", **quantised).dtype == "fp8"
    blocks = {**LLAMA, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    assert read_config(blocks, precision_given=True).dtype is None
    with pytest.raises(RooflineError, match="state `precision`"):
        read_config(blocks)


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"model_type": "absent"}, None, "needs a model_type"),
        ({"model_type": "mixtral"}, "model_type", "supported are llama, mistral, qwen2, qwen3"),
        ({"model_type": ["llama"]}, "model_type", "not supported"),
        ({"num_experts": 64}, "num_experts", "mixture of experts"),
        ({"num_local_experts": 8}, "num_local_experts", "mixture of experts"),
        ({"text_config": {"hidden_size": 1}}, "text_config", "multimodal"),
        ({"architectures": ["LlamaForSequenceClassification"]}, "architectures", "LM head"),
        ({"hidden_size": "absent"}, "hidden_size", "missing key"),
        ({"hidden_size": 0}, "hidden_size", "at least 1"),
        ({"hidden_size": "wide"}, "hidden_size", "whole number"),
        ({"num_hidden_layers": True}, "num_hidden_layers", "whole number"),
        ({"vocab_size": 2**63}, "vocab_size", "2^62"),
        ({"num_key_value_heads": 3}, "num_key_value_heads", "multiple of num_key_value_heads (3)"),
        ({"num_attention_heads": 6}, "num_attention_heads", "hidden_size (64)"),
        ({"hidden_act": "mish"}, "hidden_act", "silu"),
        ({"hidden_act": ["silu"]}, "hidden_act", "silu"),
        ({"hidden_act": {}}, "hidden_act", "silu"),
        ({"attention_bias": "yes"}, "attention_bias", "true or false"),
        ({"torch_dtype": "int8"}, "torch_dtype", "bfloat16"),
        ({"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["full_attention"]}, "layer_types", "4"),
        (
            {"model_type": "qwen3", "use_sliding_window": True, "layer_types": ["linear_attention"] * 4},
            "layer_types.0",
            "full_attention or sliding_attention",
        ),
    ],
)
def test_what_is_refused_and_what_is_said(changes, key, words):
    error = refused(**changes)
    assert error.key == key
    assert words in error.message


def test_a_misspelt_key_is_refused_where_its_default_would_be_taken_without_a_word():
    error = refused(num_key_value_heads="absent", num_key_value_head=2)
    assert error.code == "unknown-key"
    assert error.suggestions[0] == "num_key_value_heads"
    assert read(attention_sink_size=4, num_key_value_head=2) == read(), "keys that resemble none are left alone"


def test_a_description_by_hand_has_no_keys_that_nothing_reads():
    with pytest.raises(RooflineError, match="unknown key 'attention_sink_size'"):
        read_config({**LLAMA, "attention_sink_size": 4}, strict=True)
    assert read_config(LLAMA, strict=True) == read()


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
@pytest.mark.parametrize("name", corpus_configs("llama/*", "mistral/*", "qwen/*", "gemma/*", "deepseek/*", "phi/*"))
def test_every_published_config_is_read_or_refused_in_one_line(name):
    data = corpus_config(name)
    supported = data["model_type"] in ("llama", "mistral", "qwen2", "qwen3")
    try:
        assert isinstance(read_config(data), DecoderConfig)
        assert supported
    except RooflineError as error:
        assert not supported
        assert len(str(error).splitlines()) == 1
