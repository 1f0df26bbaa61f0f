from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs torch (the extra 'measure')")

import torch

from roofline.kernels import precision
from roofline.kernels.precision import fp32_products, scoped


@pytest.fixture
def fast_products():
    """A process that asked for TF32, as many do."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def settings():
    return [getattr(owner, name) for owner, name, _, _ in precision._switches()]


def test_fp32_is_fp32_whatever_the_process_is_set_to(fast_products):
    before = settings()
    with fp32_products(tf32=False):
        assert settings() == [full for _, _, full, _ in precision._switches()]
    assert settings() == before


def test_tf32_where_it_is_asked_for():
    before = settings()
    with fp32_products(tf32=True):
        assert settings() == [fast for _, _, _, fast in precision._switches()] != before
    assert settings() == before


def test_the_setting_is_put_back_after_an_error():
    before = settings()
    with pytest.raises(ZeroDivisionError), fp32_products(tf32=True):
        raise ZeroDivisionError
    assert settings() == before


def test_only_fp32_calls_are_wrapped():
    def call():
        return None

    assert scoped(call, "bf16") is call
    assert scoped(call, "fp32") is not call


def test_the_setting_holds_while_the_call_runs(fast_products):
    seen = []
    scoped(lambda: seen.append(settings()), "tf32")()
    scoped(lambda: seen.append(settings()), "fp32")()
    assert seen[0] != seen[1]
