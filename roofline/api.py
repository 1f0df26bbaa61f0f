"""The Python API: the main jobs as functions that take names or objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roofline.analysis import Datasheet, Prediction, analyse
from roofline.hardware import Hardware
from roofline.hardware import load as load_hardware
from roofline.ops import Node, Op, node_of
from roofline.workload import Workload
from roofline.workload import load as load_workload

if TYPE_CHECKING:
    from roofline.results.run import RunRecord

__all__ = ["DEFAULT_HARDWARE", "analyze", "load_hardware", "load_workload", "tree_of", "validate"]

DEFAULT_HARDWARE = "h100-sxm"


def analyze(work: str | Workload | Op | Node, hardware: str | Hardware = DEFAULT_HARDWARE) -> Prediction:
    """What bounds ``work`` on ``hardware``, each a name, a path or an object.

    Raises ``RooflineError`` for names that are not known, sizes that make no sense and dtypes that the device lacks.
    """
    device = load_hardware(hardware) if isinstance(hardware, str) else hardware
    return analyse(tree_of(work), Datasheet(device))


def validate(work: str | Workload | Op | Node, device: str = "auto", *, budget_s: float = 60.0) -> RunRecord:
    """Predict ``work`` for this machine, time its distinct ops on ``device``, and judge each by its times.

    ``device`` is auto, cpu, cuda or cuda:N. Needs torch; raises ``RooflineError`` where it is missing.
    """
    from roofline import session

    return session.validate(tree_of(work), device, budget_s=budget_s)


def tree_of(work: str | Workload | Op | Node) -> Node:
    """The tree of ops that ``work`` stands for; an op is checked, and an unfused one becomes its kernels."""
    if isinstance(work, Node):
        return work
    if isinstance(work, Op):
        work.check()
        return node_of(work.kind, work)
    return (load_workload(work) if isinstance(work, str) else work).tree
