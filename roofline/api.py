"""The Python API: the main jobs as functions that take names or objects."""

from __future__ import annotations

from roofline.analysis import Datasheet, Prediction, analyse
from roofline.hardware import Hardware
from roofline.hardware import load as load_hardware
from roofline.ops import Node, Op, node_of
from roofline.workload import Workload
from roofline.workload import load as load_workload

DEFAULT_HARDWARE = "h100-sxm"


def analyze(work: str | Workload | Op | Node, hardware: str | Hardware = DEFAULT_HARDWARE) -> Prediction:
    """What bounds ``work`` on ``hardware``, each a name, a path or an object.

    Raises ``RooflineError`` for names that are not known, sizes that make no sense and dtypes that the device lacks.
    """
    device = load_hardware(hardware) if isinstance(hardware, str) else hardware
    return analyse(tree_of(work), Datasheet(device))


def tree_of(work: str | Workload | Op | Node) -> Node:
    """The tree of ops that ``work`` stands for; an op is checked, and an unfused one becomes its kernels."""
    if isinstance(work, Node):
        return work
    if isinstance(work, Op):
        work.check()
        return node_of(work.kind, work)
    return (load_workload(work) if isinstance(work, str) else work).tree
