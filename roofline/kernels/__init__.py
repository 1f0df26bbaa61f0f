"""How operations run in torch: kernels by kind of op, the operands they run on, the outputs they should give."""

from roofline.kernels.base import Call, Kernel, NotRunnable, Operand, Operands, Outputs
from roofline.kernels.compare import mismatch, tolerance
from roofline.kernels.inputs import make_inputs, storage_bytes
from roofline.kernels.packed import Packed
from roofline.kernels.reference import reference
from roofline.kernels.registry import Prepared, availability, choose, kernels_for, named_outputs, prepare
from roofline.kernels.user import load_user_kernel

__all__ = [
    "Call",
    "Kernel",
    "NotRunnable",
    "Operand",
    "Operands",
    "Outputs",
    "Packed",
    "Prepared",
    "availability",
    "choose",
    "kernels_for",
    "load_user_kernel",
    "make_inputs",
    "mismatch",
    "named_outputs",
    "prepare",
    "reference",
    "storage_bytes",
    "tolerance",
]
