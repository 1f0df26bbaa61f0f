"""A user's own kernel: ``package.module:function``, called with the op's tensors by name."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from roofline.dtypes import DTYPES
from roofline.errors import RooflineError, nearest
from roofline.kernels.base import Call, Kernel, NotRunnable, Operands, Outputs
from roofline.kernels.packed import Packed
from roofline.ops.base import Op, Tensor


def load_user_kernel(dotted: str, kind: str) -> Kernel:
    """The kernel for ops of ``kind`` that ``dotted`` (``package.module:function``) names.

    The function is called with keyword arguments, one for each tensor that the op reads, by the names of
    ``op.tensors()``; a cache that is written in part, and a residual that is updated, are passed too and changed in
    place. It returns the outputs that are written whole: one tensor, a tuple in the op's order, or a mapping by name.
    The working directory is searched first. Raises ``RooflineError``, code ``bad-kernel``, for a name that does not
    lead to a function.
    """
    function = _import(dotted)

    def bind(op: Op, operands: Operands) -> Call:
        reason = _refuses(function, dotted, op)
        if reason is not None:
            raise NotRunnable(reason)
        arguments = {tensor.name: operands[tensor.name] for tensor in op.tensors() if _is_passed(tensor)}
        returned = tuple(tensor for tensor in op.tensors() if not _is_passed(tensor))
        return lambda: _named(function(**arguments), returned, dotted)

    def refuses(op: Op, device: torch.device) -> str | None:
        return _refuses(function, dotted, op)

    return Kernel(dotted, kind, bind, f"{dotted}, given by the user", refuses, fresh=True)


def _is_passed(tensor: Tensor) -> bool:
    return tensor.reads or tensor.touched is not None


def _import(dotted: str) -> Callable[..., Any]:
    module_name, _, attribute = dotted.partition(":")
    if not module_name or not attribute:
        raise _bad(f"{dotted!r} is no kernel: write package.module:function")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and not f"{module_name}.".startswith(f"{error.name}."):
            raise _bad(f"{module_name} needs {error.name}, which is not installed") from error
        raise _bad(f"there is no module {error.name} in {here} or among the installed packages") from error
    except Exception as error:  # the user's module may raise anything when it is imported
        raise _bad(f"importing {module_name} failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise _bad(f"{module_name} has no {part}", nearest(part, dir(found)))
        found = getattr(found, part)
    if not callable(found):
        raise _bad(f"{dotted} is a {type(found).__name__}, not a function")
    function: Callable[..., Any] = found
    return function


def _refuses(function: Callable[..., Any], dotted: str, op: Op) -> str | None:
    """Compare the function's parameters with the tensors that it is given."""
    given = [tensor.name for tensor in op.tensors() if _is_passed(tensor)]
    try:
        inspect.signature(function).bind(**dict.fromkeys(given))
    except TypeError as error:
        return f"{dotted} is called with {', '.join(given)}: {error}"
    except ValueError:
        return None  # builtins without a signature
    return None


def _named(returned: Any, tensors: tuple[Tensor, ...], dotted: str) -> Outputs:
    """The returned outputs by name; raises ``RooflineError`` where one is missing or is not what the op declares."""
    names = [tensor.name for tensor in tensors]
    if isinstance(returned, Mapping):
        outputs = dict(returned)
    else:
        several = returned if isinstance(returned, (tuple, list)) else (returned,)
        outputs = dict(zip(names, several, strict=False))
    for tensor in tensors:
        wrong = _wrong(tensor, outputs.get(tensor.name))
        if wrong is not None:
            raise _bad(f"{dotted} must return {', '.join(names)}: {tensor.name} {wrong}")
    return outputs


def _wrong(tensor: Tensor, value: Any) -> str | None:
    if value is None:
        return "is missing"
    if not isinstance(value, (torch.Tensor, Packed)):
        return f"is a {type(value).__name__}, not a tensor"
    if tuple(value.shape) != tuple(tensor.shape):
        return f"has shape {tuple(value.shape)}, not {tuple(tensor.shape)}"
    if value.dtype not in (tensor.dtype, getattr(torch, str(DTYPES[tensor.dtype].torch_name), None)):
        return f"is {value.dtype}, not {tensor.dtype}"
    return None


def _bad(message: str, suggestions: tuple[str, ...] = ()) -> RooflineError:
    return RooflineError(message, code="bad-kernel", suggestions=suggestions)
