from __future__ import annotations

import dataclasses

import numpy
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from roofline import catalog
from roofline.models import DecoderConfig, Precision, decoder_step, read_config
from roofline.ops.tree import leaves, parameters, resident_bytes, total
from tests.models.measures import tensor_flops, truth
from tests.reference import CORPUS, NO_CORPUS, corpus_config, corpus_configs

BF16 = Precision(weights="bf16")
FUSIONS = ("serving", "none")


def model(name: str) -> DecoderConfig:
    document = catalog.read_yaml(catalog.resolve("workloads/models", name))
    config = read_config(document.data, document)
    assert isinstance(config, DecoderConfig)
    return config


def traffic(tree) -> int:
    return total(tree, lambda op: op.traffic_bytes)


def by_kind(tree) -> dict[str, int]:
    found: dict[str, int] = {}
    for leaf in leaves(tree):
        found[leaf.op.kind] = found.get(leaf.op.kind, 0) + leaf.count
    return found


PUBLISHED = {
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "qwen2.5-3b": 3_085_938_688,
    "qwen3-0.6b": 596_049_920,
    "qwen3-8b": 8_190_735_360,
    "mistral-7b": 7_248_023_552,
}
"""Parameters: the sums over the tensors of the published safetensors files."""


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_of_the_catalogue(name, fusion):
    for phase in ("prefill", "decode"):
        assert parameters(decoder_step(model(name), phase, fusion=fusion)) == PUBLISHED[name]


def test_every_decoder_of_the_catalogue_is_checked():
    found = set()
    for name in catalog.names("workloads/models"):
        document = catalog.read_yaml(catalog.resolve("workloads/models", name))
        if "model_type" in document.data:
            found.add(name)
    assert found == set(PUBLISHED)


# ---------------------------------------------------------------- worked numbers


def test_decode_of_llama_8b_reads_every_weight_but_the_embedding_table():
    tree = decoder_step(model("llama-3.1-8b"), "decode", batch=1, context=0, precision=BF16)
    weights = 2 * (8_030_261_248 - 128_256 * 4096)
    assert traffic(tree) == pytest.approx(15.009e9, rel=0.01)
    assert 0 < traffic(tree) - weights < 0.001 * weights, "the rest is one row of everything"
    # the new position is the only one cached: k and v of 8 heads of 128 in 32 layers
    assert resident_bytes(tree)["kv_cache"] == 2 * 8 * 128 * 32 * 2


def test_decode_of_llama_8b_in_a_batch_with_a_long_context():
    tree = decoder_step(model("llama-3.1-8b"), "decode", batch=64, context=8192, precision=BF16)
    assert traffic(tree) == pytest.approx(83.7e9, rel=0.01)
    assert total(tree, lambda op: op.flops) / traffic(tree) == pytest.approx(14.7, rel=0.01)
    assert resident_bytes(tree)["kv_cache"] == 64 * 8193 * 131_072


def test_prefill_of_4096_tokens_of_llama_8b():
    tree = decoder_step(model("llama-3.1-8b"), "prefill", tokens=4096, precision=BF16)
    kinds = {"linear": 0, "attention": 0, "lm-head": 0}
    for leaf in leaves(tree):
        if leaf.op.kind in kinds:
            kinds[leaf.op.kind] += leaf.count * next(iter(leaf.op.arithmetic().values()))
    # DESIGN: 57.17 linear + 4.40 attention (diagonal included) + 0.001 for one row of the LM head
    assert kinds["linear"] == 2 * 4096 * 32 * 218_103_808
    assert kinds["attention"] == 32 * 4 * 32 * 128 * (4096 * 4097 // 2)
    assert kinds["lm-head"] == 2 * 4096 * 128_256
    assert tensor_flops(tree) == sum(kinds.values()) == pytest.approx(61.57e12, rel=1e-4)


def test_the_cache_of_grouped_queries_is_that_of_the_kv_heads():
    # a reported mistake of another tool: Llama 3 70B, one sequence of 8192, 33.55 MB a layer and not 268 MB
    tree = decoder_step(model("llama-3.1-70b"), "decode", batch=1, context=8191, precision=BF16)
    assert resident_bytes(tree)["kv_cache"] == 80 * 33_554_432


def test_quantised_weights_leave_embedding_norms_and_head_alone():
    llama = model("llama-3.1-8b")
    linear, table = 32 * 218_103_808, 128_256 * 4096
    norms = 65 * 4096
    for word, size in (("bf16", 2), ("fp8", 1)):
        tree = decoder_step(llama, "decode", precision=Precision(weights=word))
        assert resident_bytes(tree)["weight"] == size * linear + 2 * (2 * table + norms)
    four = decoder_step(llama, "decode", precision=Precision(weights="int4-g128", compute="bf16"))
    assert resident_bytes(four)["weight"] == linear * (4 + 16 / 128) / 8 + 2 * (2 * table + norms)
    assert {str(engine) for leaf in leaves(four) for engine in leaf.op.arithmetic() if engine.unit == "tensor"} == {
        "tensor:bf16"
    }


def test_a_narrow_cache_is_what_attention_reads_and_the_append_writes():
    llama = model("llama-3.1-8b")
    wide, narrow = (
        decoder_step(llama, "decode", batch=8, context=4095, precision=Precision(weights="bf16", kv=kv))
        for kv in ("bf16", "fp8")
    )
    cache = 8 * 4096 * 65_536 * 2
    assert resident_bytes(wide)["kv_cache"] - resident_bytes(narrow)["kv_cache"] == cache // 2
    # read by attention once, and one position in 4096 written
    assert traffic(wide) - traffic(narrow) == cache // 2 + cache // 2 // 4096


def test_tied_embeddings_are_one_storage_of_which_decode_reads_all_as_the_head():
    config = model("llama-3.2-1b")
    untied = dataclasses.replace(config, tied=False)
    table = 2 * 128_256 * 2048
    one, two = (decoder_step(each, "decode", precision=BF16) for each in (config, untied))
    assert resident_bytes(two)["weight"] - resident_bytes(one)["weight"] == table
    assert traffic(one) == traffic(two)


def test_only_the_last_position_goes_through_the_head():
    config = model("qwen3-8b")
    for batch in (1, 3):
        tree = decoder_step(config, "prefill", batch=batch, tokens=100)
        head = next(leaf.op for leaf in leaves(tree) if leaf.name == "lm_head")
        assert head.rows == batch


def test_more_tokens_than_the_vocabulary_has_cannot_all_differ():
    config = dataclasses.replace(model("qwen3-0.6b"), vocab_size=1000)
    embedding = next(iter(leaves(decoder_step(config, "prefill", batch=4, tokens=500)))).op
    table = embedding.tensors()[1]
    assert table.traffic_bytes == table.resident_bytes


# ---------------------------------------------------------------- structure

configs = st.builds(
    lambda heads, groups, **rest: DecoderConfig(model_type="any", heads=heads * groups, kv_heads=heads, **rest),
    heads=st.integers(1, 4),
    groups=st.integers(1, 4),
    hidden_size=st.integers(1, 300),
    intermediate_size=st.integers(1, 300),
    layers=st.integers(1, 6),
    head_dim=st.integers(1, 20).map(lambda half: 2 * half),
    vocab_size=st.integers(1, 500),
    tied=st.booleans(),
    qkv_bias=st.booleans(),
    o_bias=st.booleans(),
    mlp_bias=st.booleans(),
    qk_norm=st.booleans(),
)
steps = st.one_of(
    st.fixed_dictionaries({"phase": st.just("decode"), "batch": st.integers(1, 9), "context": st.integers(0, 99)}),
    st.fixed_dictionaries(
        {
            "phase": st.just("prefill"),
            "batch": st.integers(1, 9),
            "tokens": st.integers(1, 99),
            "prefix": st.integers(0, 99),
        }
    ),
)


@given(config=configs, step=steps)
@settings(max_examples=60, deadline=None)
def test_parameters_are_those_of_the_architecture_whatever_runs(config, step):
    c = config
    query, key = c.heads * c.head_dim, c.kv_heads * c.head_dim
    layer = c.hidden_size * (query + 2 * key) + (query + 2 * key) * c.qkv_bias
    layer += query * c.hidden_size + c.hidden_size * c.o_bias
    layer += 3 * c.hidden_size * c.intermediate_size + (2 * c.intermediate_size + c.hidden_size) * c.mlp_bias
    layer += 2 * c.hidden_size + 2 * c.head_dim * c.qk_norm
    whole = c.layers * layer + c.hidden_size + c.vocab_size * c.hidden_size * (1 if c.tied else 2)
    for fusion in FUSIONS:
        assert parameters(decoder_step(config, precision=BF16, fusion=fusion, **step)) == whole


@given(config=configs, step=steps)
@settings(max_examples=60, deadline=None)
def test_without_fusion_the_same_is_resident_and_more_moves(config, step):
    fused, apart = (decoder_step(config, precision=BF16, fusion=fusion, **step) for fusion in FUSIONS)
    for role in ("weight", "kv_cache"):
        assert resident_bytes(fused)[role] == resident_bytes(apart)[role]
    assert traffic(apart) > traffic(fused)
    # every kernel that the fused step has, it has by itself; attention does the whole square
    queries = 1 if step["phase"] == "decode" else step["tokens"]
    keys = queries + step.get("context", step.get("prefix", 0))
    square = queries * keys
    seen = square - queries * (queries - 1) // 2
    pairs = config.layers * step["batch"] * config.heads * (square - seen)
    assert tensor_flops(apart) - tensor_flops(fused) == 4 * pairs * config.head_dim
    assert all(leaf.op.check() is None for tree in (fused, apart) for leaf in leaves(tree))


def test_norms_and_residual_adds_are_counted_once_each():
    config = dataclasses.replace(model("llama-3.1-8b"), layers=3)
    fused = [leaf for leaf in leaves(decoder_step(config, "decode")) if leaf.op.kind == "rms-norm"]
    assert sum(leaf.count for leaf in fused) == 2 * 3 + 1
    assert sum(leaf.count for leaf in fused if leaf.op.residual) == 2 * 3
    apart = by_kind(decoder_step(config, "decode", fusion="none"))
    assert (apart["rms-norm"], apart["residual"]) == (2 * 3 + 1, 2 * 3)


def test_the_kernels_of_a_layer():
    names = [leaf.name for leaf in leaves(decoder_step(model("qwen3-8b"), "decode"))]
    assert names == [
        "embed_tokens",
        "input_layernorm",
        "layers/self_attn/qkv_proj",
        "layers/self_attn/q_norm",
        "layers/self_attn/k_norm",
        "layers/self_attn/rotary_emb",
        "layers/self_attn/attn",
        "layers/self_attn/o_proj",
        "layers/post_attention_layernorm",
        "layers/mlp/gate_up_proj",
        "layers/mlp/act_fn",
        "layers/mlp/down_proj",
        "layers/next_input_layernorm",
        "lm_head",
    ]
    apart = [leaf.name for leaf in leaves(decoder_step(model("qwen3-8b"), "decode", fusion="none"))]
    assert {"layers/self_attn/kv_append", "layers/self_attn/attn/softmax", "layers/mlp/act_fn/product"} <= set(apart)
    assert len(apart) == 23


# ---------------------------------------------------------------- sliding windows


def windowed(sliding: int, window: int = 16) -> DecoderConfig:
    return dataclasses.replace(model("mistral-7b"), layers=8, sliding_window=window, sliding_layers=sliding)


def test_a_window_bounds_what_a_layer_keeps_and_reads():
    full, some, every = (
        decoder_step(windowed(sliding), "decode", batch=2, context=99, precision=BF16) for sliding in (0, 3, 8)
    )
    position = 2 * 2 * 8 * 128 * 2  # k and v, two sequences, 8 heads of 128, 2 bytes
    assert resident_bytes(full)["kv_cache"] == 8 * 100 * position
    assert resident_bytes(some)["kv_cache"] == (5 * 100 + 3 * 16) * position
    assert resident_bytes(every)["kv_cache"] == 8 * 16 * position
    assert traffic(full) - traffic(some) == 3 * (100 - 16) * position
    assert [node.name for node in some.children if node.name.endswith("layers")] == [
        "full_attention_layers",
        "sliding_attention_layers",
    ]


def test_a_window_that_is_never_full_changes_nothing():
    for step in ({"phase": "decode", "context": 15}, {"phase": "prefill", "tokens": 10, "prefix": 6}):
        with_window, without = (decoder_step(windowed(sliding), **step) for sliding in (8, 0))
        assert tensor_flops(with_window) == tensor_flops(without)
        assert traffic(with_window) == traffic(without)


def test_a_prefill_under_a_window_keeps_the_triangle():
    tree = decoder_step(windowed(8), "prefill", tokens=40)
    attention = next(leaf.op for leaf in leaves(tree) if leaf.op.kind == "attention")
    assert attention.pairs == sum(min(position + 1, 16) for position in range(40))


def test_a_chunk_under_a_window_sees_the_last_positions_of_its_prefix_only():
    chunk = decoder_step(windowed(8), "prefill", tokens=40, prefix=1000)
    attention = next(leaf.op for leaf in leaves(chunk) if leaf.op.kind == "attention")
    assert attention.pairs == 40 * 16
    assert attention.keys_read == 40 + 15


# ---------------------------------------------------------------- other kinds of number


@given(config=configs, data=st.data())
@settings(max_examples=30, deadline=None)
def test_arrays_price_many_steps_at_once(config, data):
    batches = data.draw(st.lists(st.integers(1, 512), min_size=1, max_size=4))
    contexts = [data.draw(st.integers(0, 9999)) for _ in batches]
    config = dataclasses.replace(config, sliding_window=100, sliding_layers=config.layers // 2)
    many = decoder_step(
        config, "decode", batch=numpy.array(batches, float), context=numpy.array(contexts, float), precision=BF16
    )
    for index, (batch, context) in enumerate(zip(batches, contexts, strict=True)):
        one = decoder_step(config, "decode", batch=batch, context=context, precision=BF16)
        assert numpy.broadcast_to(traffic(many), len(batches))[index] == traffic(one)
        assert numpy.broadcast_to(tensor_flops(many), len(batches))[index] == tensor_flops(one)


def test_the_closed_form_of_a_decode_step():
    batch, context = sympy.symbols("B c", integer=True, positive=True)
    config = model("llama-3.1-8b")
    closed = tensor_flops(decoder_step(config, "decode", batch=batch, context=context, precision=BF16))
    expected = 2 * batch * (32 * 218_103_808 + 4096 * 128_256) + 32 * 4 * 32 * 128 * batch * (context + 1)
    assert sympy.expand(closed - expected) == 0


# ---------------------------------------------------------------- ground truth of the corpus

FAMILIES = ("llama/*", "mistral/*", "qwen/*")


def readable() -> list[str]:
    types = ("llama", "mistral", "qwen2", "qwen3")
    return [name for name in corpus_configs(*FAMILIES) if corpus_config(name).get("model_type") in types]


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason=NO_CORPUS)
@pytest.mark.parametrize("name", readable())
def test_parameters_and_flops_are_those_of_the_modelling_code(name):
    config = read_config(corpus_config(name))
    assert isinstance(config, DecoderConfig)
    [(_, count)] = truth()[name, "params_total"]
    assert parameters(decoder_step(config, "decode")) == count
    for shape, flops in truth().get((name, "prefill_flops"), []):
        step = decoder_step(config, "prefill", batch=shape["batch"], tokens=shape["seq"], fusion="none")
        # counted there: the whole square, and every position through the head
        rows = shape["batch"] * (shape["seq"] - 1)
        assert tensor_flops(step) + 2 * rows * config.hidden_size * config.vocab_size == flops
    for shape, flops in truth().get((name, "decode_flops"), []):
        for fusion in FUSIONS:
            step = decoder_step(config, "decode", batch=shape["batch"], context=shape["past"], fusion=fusion)
            assert tensor_flops(step) == flops
