from __future__ import annotations

import pytest

from roofline.errors import RooflineError
from roofline.ops import Attention, Embedding, GatedActivation, KVAppend, Linear, LMHead, RMSNorm, group, node_of
from roofline.ops.tree import compulsory_bytes, distinct, leaves, parameters, prune, resident_bytes, total


def linear(**changes):
    return Linear(**{"tokens": 2, "in_features": 4, "out_features": 8} | changes)


def layer(cached=6, queries=1):
    sizes = {"batch": 3, "kv_heads": 2, "head_dim": 4, "queries": queries, "cached": cached}
    return group(
        "layer", node_of("append", KVAppend(**sizes)), node_of("attention", Attention(heads=2, **sizes)), repeat=5
    )


def test_leaves_have_their_path_and_their_count_over_the_whole_tree():
    tree = group("step", node_of("head", linear()), group("layers", node_of("up", linear(), repeat=2), repeat=3))
    assert [(leaf.name, leaf.count) for leaf in leaves(tree)] == [("head", 1), ("layers/up", 6)]
    assert total(tree, lambda op: op.flops) == 7 * linear().flops


def test_a_tree_of_one_op_is_called_by_its_name():
    assert [leaf.name for leaf in leaves(node_of("only", linear()))] == ["only"]


def test_an_unfused_op_becomes_the_kernels_that_it_runs():
    gate = GatedActivation(tokens=2, intermediate_size=8, implementation="naive")
    assert [leaf.name for leaf in leaves(node_of("act", gate))] == ["activation", "product"]
    assert [leaf.name for leaf in leaves(group("mlp", node_of("act", gate)))] == ["act/activation", "act/product"]


def test_the_cache_that_one_op_writes_and_another_reads_is_resident_once():
    cache = 2 * 3 * 2 * 7 * 4 * 2  # k and v, batch 3, 2 heads, 7 positions, size 4, 2 bytes
    assert resident_bytes(layer())["kv_cache"] == 5 * cache


def test_the_compulsory_traffic_of_a_cache_is_one_pass_over_it():
    tree = layer()
    append, attention = (leaf.op for leaf in leaves(tree))
    outside = sum(t.traffic_bytes for t in append.tensors() if t.role == "activation")
    written = attention.tensors()[-1].traffic_bytes
    assert compulsory_bytes(tree) == resident_bytes(tree)["kv_cache"] + outside + written


def test_the_kernels_of_naive_attention_share_the_cache_of_their_layer():
    def cache(implementation):
        sizes = {"batch": 3, "kv_heads": 2, "head_dim": 4, "queries": 1, "cached": 6}
        attention = Attention(heads=2, implementation=implementation, **sizes)
        layer = group("layer", node_of("append", KVAppend(**sizes)), node_of("attention", attention), repeat=5)
        return resident_bytes(group("step", layer))["kv_cache"]

    assert cache("naive") == cache("fused") == 5 * 2 * 3 * 2 * 7 * 4 * 2


def test_tied_weights_are_resident_once_and_counted_once():
    sizes = {"hidden_size": 4, "vocab_size": 10}

    def model(tied):
        embed = node_of("embed", Embedding(tokens=1, tied=tied, **sizes))
        return group("step", embed, node_of("head", LMHead(rows=1, tied=tied, **sizes)))

    assert parameters(model(tied=True)) == 40
    assert parameters(model(tied=False)) == 80
    assert resident_bytes(model(tied=True))["weight"] == 80


def test_parameters_count_elements_not_bytes():
    assert parameters(node_of("l", linear(weight_dtype="int4-g128", compute="bf16"))) == 32


def test_the_largest_op_sets_the_activation_memory():
    tree = group("step", node_of("small", RMSNorm(tokens=1, hidden_size=4)), node_of("large", linear()))
    assert resident_bytes(tree)["activation"] == (2 * 4 + 2 * 8) * 2


def test_distinct_ops_stand_once_with_their_counts_added():
    tree = group("step", node_of("a", linear(), repeat=2), node_of("b", linear()), node_of("c", linear(tokens=3)))
    assert [(leaf.name, leaf.count) for leaf in distinct(tree)] == [("a", 3), ("c", 1)]


@pytest.mark.parametrize("pattern", ["layers/up", "up", "linear", "*up", "u?", "layers/*", "lay*"])
def test_prune_keeps_what_matches_path_name_or_kind(pattern):
    tree = group("step", node_of("norm", RMSNorm(tokens=1, hidden_size=4)), group("layers", node_of("up", linear())))
    assert [leaf.name for leaf in leaves(prune(tree, pattern))] == ["layers/up"]


def test_prune_names_what_there_is():
    with pytest.raises(RooflineError, match="no op matches 'upp'") as caught:
        prune(group("step", node_of("up", linear())), "upp")
    assert caught.value.suggestions == ("up",)
