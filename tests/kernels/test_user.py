from __future__ import annotations

import itertools
import textwrap

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

from roofline.errors import RooflineError
from roofline.kernels import availability, load_user_kernel, mismatch, prepare, reference
from roofline.ops import Activation, Attention, KVAppend, Linear, RMSNorm

SERIAL = itertools.count()
LINEAR = Linear(tokens=4, in_features=8, out_features=3)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of kernels into the working directory and name it."""
    monkeypatch.chdir(tmp_path)

    def write(code: str) -> str:
        name = f"mykernels{next(SERIAL)}"  # a module is imported once in a process
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        return name

    return write


def verdict(op, dotted):
    kernel = load_user_kernel(dotted, op.kind)
    ready = prepare(op, "cpu", kernel=kernel)
    expected = reference(op, ready.operands)
    return mismatch(op, expected, ready.outputs())


def test_a_function_in_the_working_directory_is_called_by_name(module):
    name = module("def mine(*, x, weight):\n    return x @ weight.T\n")
    assert verdict(LINEAR, f"{name}:mine") is None
    assert availability(load_user_kernel(f"{name}:mine", "linear"), LINEAR, "cpu") is None


def test_a_wrong_kernel_is_found_out(module):
    name = module("def mine(x, weight):\n    return (x @ weight.T) * 1.1\n")
    assert verdict(LINEAR, f"{name}:mine").startswith("y is ")
    reason = availability(load_user_kernel(f"{name}:mine", "linear"), LINEAR, "cpu")
    assert reason.startswith("computes something else")


@pytest.mark.parametrize("result", ["out", "(out,)", "{'out': out}"])
def test_outputs_come_as_a_tensor_a_tuple_or_a_mapping(module, result):
    code = f"""
        from torch.nn.functional import scaled_dot_product_attention as sdpa
        def mine(q, k, v):
            out = sdpa(q, k, v, is_causal=True)
            return {result}
    """
    assert verdict(Attention(heads=2, head_dim=8, queries=5), f"{module(code)}:mine") is None


def test_what_is_updated_or_written_in_part_is_changed_in_place(module):
    name = module("""
        import torch
        def append(k, v, k_cache, v_cache):
            k_cache[:, :, -k.shape[2]:] = k
            v_cache[:, :, -v.shape[2]:] = v
        def norm(x, residual, weight):
            residual += x
            return torch.nn.functional.rms_norm(residual.float(), (8,), weight.float(), 1e-6).bfloat16()
    """)
    assert verdict(KVAppend(kv_heads=2, head_dim=4, queries=2, cached=3), f"{name}:append") is None
    assert verdict(RMSNorm(tokens=3, hidden_size=8, residual=True), f"{name}:norm") is None


def test_a_class_with_a_method_is_found(module):
    name = module("""
        class Kernels:
            @staticmethod
            def mine(x, weight):
                return x @ weight.T
    """)
    assert verdict(LINEAR, f"{name}:Kernels.mine") is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("noattribute", "write package.module:function"),
        (":mine", "write package.module:function"),
        ("torch:", "write package.module:function"),
        ("nowhere_at_all:mine", "no module nowhere_at_all"),
        ("torch.nowhere:mine", "no module torch.nowhere"),
        ("torch.nn.functional:sofmax", "torch.nn.functional has no sofmax"),
        ("torch:pi", "torch:pi is a float, not a function"),
    ],
)
def test_a_name_that_leads_nowhere(path, message):
    with pytest.raises(RooflineError, match=message) as refused:
        load_user_kernel(path, "linear")
    assert refused.value.code == "bad-kernel"
    assert "\n" not in str(refused.value)


def test_the_nearest_function_is_suggested():
    with pytest.raises(RooflineError) as refused:
        load_user_kernel("torch.nn.functional:sofmax", "softmax")
    assert "softmax" in refused.value.suggestions


def test_a_module_that_fails_to_import(module):
    name = module("import roofline_missing_dependency\n")
    with pytest.raises(RooflineError, match="needs roofline_missing_dependency"):
        load_user_kernel(f"{name}:mine", "linear")
    name = module("1 / 0\n")
    with pytest.raises(RooflineError, match=r"importing .* failed: ZeroDivisionError"):
        load_user_kernel(f"{name}:mine", "linear")


def test_a_function_that_takes_other_tensors(module):
    kernel = load_user_kernel(f"{module('def mine(a, b): pass')}:mine", "linear")
    reason = availability(kernel, LINEAR, "cpu")
    assert "is called with x, weight" in reason
    with pytest.raises(RooflineError, match="is called with x, weight"):
        prepare(LINEAR, "cpu", kernel=kernel)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "must return y: y is missing"),
        ("return 3", "y is a int, not a tensor"),
        ("return [1.0]", "y is a float, not a tensor"),
        ("return x", r"y has shape \(4, 8\), not \(4, 3\)"),
        ("return {'out': x}", "y is missing"),
        ("return (x @ weight.T).float()", "y is torch.float32, not bf16"),
    ],
)
def test_a_function_that_returns_something_else(module, body, message):
    name = module(f"def mine(x, weight):\n    {body}\n")
    ready = prepare(LINEAR, "cpu", kernel=load_user_kernel(f"{name}:mine", "linear"))
    with pytest.raises(RooflineError, match=message):
        ready.call()


def test_a_function_that_fails_is_not_available(module):
    kernel = load_user_kernel(f"{module('def mine(x, weight): return {}[1]')}:mine", "linear")
    assert availability(kernel, LINEAR, "cpu") == "raises KeyError: 1"


def test_a_function_without_a_signature_is_simply_called():
    op = Activation(tokens=2, features=3, function="relu")
    kernel = load_user_kernel("torch:relu", "activation")
    assert availability(kernel, op, "cpu") is None
    assert "computes something else" in availability(kernel, op.with_(function="silu"), "cpu")
