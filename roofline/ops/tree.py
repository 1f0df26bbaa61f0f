"""``Node``: how operations make up a layer, a step, a pipeline; identical parts are folded by ``repeat``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from roofline.errors import RooflineError, nearest
from roofline.ops.base import PERSISTENT_ROLES, Op, Role, Tensor
from roofline.ops.sizes import Size, maximum


@dataclass(frozen=True, slots=True)
class Node:
    """A named group of children, or one op, run ``repeat`` times one after the other.

    ``shared``: every repetition uses the same weights and state (denoising steps, guidance passes); otherwise each
    has its own (layers). ``kernels``: the children are the kernels of one unfused op, so that storage which they name
    (a KV cache) is shared with the neighbours of that op.
    """

    name: str
    children: tuple["Node", ...] = ()
    op: Op | None = None
    repeat: Size = 1
    shared: bool = False
    kernels: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """One op of a tree: where it is, how often it runs in all, and the names of other places where it is the same."""

    path: tuple[str, ...]
    op: Op
    count: Size
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its path as one word, the root left out."""
        return "/".join(self.path)


def node_of(name: str, op: Op, repeat: Size = 1) -> Node:
    """A leaf, or the group of kernels that an unfused implementation of ``op`` runs."""
    parts = op.parts()
    if not parts:
        return Node(name, op=op, repeat=repeat)
    return Node(name, tuple(node_of(part, child) for part, child in parts), repeat=repeat, kernels=True)


def group(name: str, *children: Node, repeat: Size = 1, shared: bool = False) -> Node:
    """A node with children."""
    return Node(name, children, repeat=repeat, shared=shared)


def leaves(root: Node) -> Iterator[Leaf]:
    """Every op with its path below the root and its total count, in order of execution."""

    def walk(node: Node, path: tuple[str, ...], count: Size) -> Iterator[Leaf]:
        count = count * node.repeat
        if node.op is not None:
            yield Leaf(path, node.op, count)
        for child in node.children:
            yield from walk(child, (*path, child.name), count)

    return walk(root, () if root.children else (root.name,), 1)


def distinct(root: Node) -> list[Leaf]:
    """Each different op once, under the path where it stands first, with its count over the whole tree."""
    found: dict[Op, Leaf] = {}
    for leaf in leaves(root):
        known = found.get(leaf.op)
        if known is not None:
            leaf = replace(known, count=known.count + leaf.count, also=(*known.also, leaf.name))
        found[leaf.op] = leaf
    return list(found.values())


def prune(root: Node, pattern: str) -> Node:
    """The tree with only the ops whose kind, path, or end of the path (``mlp/*``) matches the glob ``pattern``.

    Raises ``RooflineError`` where none does.
    """
    kept = _prune(root, pattern, ())
    if kept is None:
        names = [leaf.name for leaf in leaves(root)]
        known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise RooflineError(
            f"no op matches {pattern!r}; there are {known}",
            code="no-op",
            key="--op",
            suggestions=nearest(pattern, {name for full in names for name in (full, full.rpartition("/")[2])}),
        )
    return kept


def _prune(node: Node, pattern: str, path: tuple[str, ...]) -> Node | None:
    if node.op is not None:
        parts = path or (node.name,)
        names = (node.op.kind, *("/".join(parts[start:]) for start in range(len(parts))))
        return node if any(fnmatchcase(name, pattern) for name in names) else None
    children = (_prune(child, pattern, (*path, child.name)) for child in node.children)
    kept = tuple(child for child in children if child is not None)
    return replace(node, children=kept) if kept else None


def total(root: Node, measure: Callable[[Op], Size]) -> Size:
    """The sum of ``measure`` over all executions of all ops."""
    result: Size = 0
    for leaf in leaves(root):
        result = result + leaf.count * measure(leaf.op)
    return result


def fold_storage(root: Node, measure: Callable[[Tensor], Size]) -> dict[Role, Size]:
    """The sum of ``measure`` over distinct persistent storage (weights, KV cache, state), by role.

    Layers add up; repetitions of a ``shared`` node do not. Storage that several ops name is counted once, as the
    largest of their views of it.
    """
    own, named = _fold(root, measure)
    for role, value in named.values():
        own[role] = own.get(role, 0) + value
    return own


_Named = dict[str, tuple[Role, Size]]


def _fold(node: Node, measure: Callable[[Tensor], Size]) -> tuple[dict[Role, Size], _Named]:
    own: dict[Role, Size] = {}
    named: _Named = {}
    if node.op is not None:
        for tensor in node.op.tensors():
            if tensor.role not in PERSISTENT_ROLES:
                continue
            if tensor.storage:
                _name(named, tensor.storage, tensor.role, measure(tensor))
            else:
                own[tensor.role] = own.get(tensor.role, 0) + measure(tensor)
    for child in node.children:
        child_own, child_named = _fold(child, measure)
        for role, value in child_own.items():
            own[role] = own.get(role, 0) + value
        for key, (role, value) in child_named.items():
            _name(named, key, role, value)
    once = isinstance(node.repeat, int) and node.repeat == 1
    if not once or (node.children and not node.kernels):
        named = _settle(own, named)
    times = 1 if node.shared else node.repeat
    return {role: value * times for role, value in own.items()}, named


def _name(named: _Named, key: str, role: Role, value: Size) -> None:
    known = named.get(key)
    named[key] = (role, value if known is None else maximum(known[1], value))


def _settle(own: dict[Role, Size], named: _Named) -> _Named:
    """Storage shared by the ops of this node belongs to it from here on; storage of the whole tree moves up."""
    rest: _Named = {}
    for key, (role, value) in named.items():
        if key.startswith("/"):
            rest[key] = (role, value)
        else:
            own[role] = own.get(role, 0) + value
    return rest


def parameters(root: Node) -> Size:
    """Weight elements of the tree, tied weights once."""
    return fold_storage(root, lambda tensor: tensor.elements if tensor.role == "weight" else 0).get("weight", 0)


def resident_bytes(root: Node) -> dict[str, Size]:
    """Bytes that must be in memory, by role; ``activation`` is the largest set of operands of one op."""
    held: dict[str, Size] = {str(role): b for role, b in fold_storage(root, lambda t: t.resident_bytes).items()}
    peak: Size = 0
    for leaf in leaves(root):
        moving = [t.resident_bytes for t in leaf.op.tensors() if t.role not in PERSISTENT_ROLES]
        peak = maximum(peak, sum(moving))
    held["activation"] = peak
    return held


def compulsory_bytes(root: Node) -> Size:
    """Traffic that no implementation avoids: weights, KV and state once, the tree's first inputs, its last outputs."""
    held: Size = 0
    for value in fold_storage(root, lambda tensor: tensor.traffic_bytes).values():
        held = held + value
    ops = list(leaves(root))
    first, last = ops[0].op, ops[-1].op
    for tensor in first.tensors():
        if tensor.role not in PERSISTENT_ROLES and tensor.reads:
            held = held + tensor.touched_bytes
    for tensor in last.tensors():
        if tensor.role not in PERSISTENT_ROLES and tensor.writes:
            held = held + tensor.touched_bytes
    return held
