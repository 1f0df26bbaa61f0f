"""roofline: what bounds an inference workload, how close it runs to the limit, and what would change it.

    import roofline
    prediction = roofline.analyze("decode", hardware="h100")
    prediction.bound, prediction.floor_s, prediction.intensity
    roofline.analyze(roofline.Linear(tokens=64, in_features=4096, out_features=4096), hardware="l40s")

The names below are the whole public API; they load on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from roofline.version import __version__ as __version__

if TYPE_CHECKING:
    from roofline.analysis import Prediction
    from roofline.api import analyze, load_hardware, load_workload, validate
    from roofline.errors import RooflineError
    from roofline.hardware import Hardware
    from roofline.ops import Attention, Linear, Node, Op, Tensor
    from roofline.results.run import RunRecord
    from roofline.workload import Workload

__all__ = [
    "Attention",
    "Hardware",
    "Linear",
    "Node",
    "Op",
    "Prediction",
    "RooflineError",
    "RunRecord",
    "Tensor",
    "Workload",
    "analyze",
    "load_hardware",
    "load_workload",
    "validate",
]

_HOMES = {
    "Attention": "roofline.ops:Attention",
    "Hardware": "roofline.hardware:Hardware",
    "Linear": "roofline.ops:Linear",
    "Node": "roofline.ops:Node",
    "Op": "roofline.ops:Op",
    "Prediction": "roofline.analysis:Prediction",
    "RooflineError": "roofline.errors:RooflineError",
    "RunRecord": "roofline.results.run:RunRecord",
    "Tensor": "roofline.ops:Tensor",
    "Workload": "roofline.workload:Workload",
    "analyze": "roofline.api:analyze",
    "load_hardware": "roofline.api:load_hardware",
    "load_workload": "roofline.api:load_workload",
    "validate": "roofline.api:validate",
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'roofline' has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
