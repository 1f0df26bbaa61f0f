"""What an operation costs: pure arithmetic on sizes, without torch, without I/O."""

from roofline.ops.attention import Attention, AttentionScores, AttentionValues
from roofline.ops.base import Fill, Op, Tensor
from roofline.ops.elementwise import Activation, GatedActivation, Multiply, Residual, ScaleShift
from roofline.ops.kv_cache import KVAppend, RotaryEmbedding
from roofline.ops.linear import Embedding, Linear, LMHead
from roofline.ops.norm import LayerNorm, RMSNorm, Softmax
from roofline.ops.tree import Leaf, Node, group, leaves, node_of

OPS: dict[str, type[Op]] = {
    op.kind: op
    for op in (
        Linear,
        LMHead,
        Embedding,
        RMSNorm,
        LayerNorm,
        Softmax,
        Activation,
        GatedActivation,
        Multiply,
        Residual,
        ScaleShift,
        RotaryEmbedding,
        KVAppend,
        Attention,
        AttentionScores,
        AttentionValues,
    )
}
"""Every operation by its name in YAML."""

__all__ = [
    "OPS",
    "Activation",
    "Attention",
    "AttentionScores",
    "AttentionValues",
    "Embedding",
    "Fill",
    "GatedActivation",
    "KVAppend",
    "LMHead",
    "LayerNorm",
    "Leaf",
    "Linear",
    "Multiply",
    "Node",
    "Op",
    "RMSNorm",
    "Residual",
    "RotaryEmbedding",
    "ScaleShift",
    "Softmax",
    "Tensor",
    "group",
    "leaves",
    "node_of",
]
