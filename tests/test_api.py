from __future__ import annotations

import subprocess
import sys

import pytest

import roofline

PUBLIC = [
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


def test_the_public_names_are_these():
    assert roofline.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(roofline, name) is not None
        assert name in dir(roofline)
    with pytest.raises(AttributeError, match="nothing"):
        _ = roofline.nothing


def test_importing_the_package_loads_nothing_else():
    code = "import sys; import roofline; print([name for name in sys.modules if name.startswith('roofline.')])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "['roofline.version']"


def test_analyze_takes_a_name_an_op_or_a_tree():
    by_name = roofline.analyze("linear", hardware="h100")
    op = roofline.load_workload("linear").tree.op
    assert roofline.analyze(op, hardware="h100-sxm").floor_s == by_name.floor_s
    assert roofline.analyze(roofline.Node("x", op=op), hardware=roofline.load_hardware("h100")).bound == by_name.bound


def test_an_unfused_op_is_analysed_as_its_kernels():
    naive = roofline.Attention(heads=1, head_dim=128, queries=64, implementation="naive")
    assert [op.name for op in roofline.analyze(naive).ops] == ["scores", "softmax", "values"]


def test_errors_are_of_one_type():
    with pytest.raises(roofline.RooflineError, match="h100"):
        roofline.analyze("linear", hardware="h1000")
