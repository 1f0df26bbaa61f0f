"""Settings of the whole suite: property tests draw the same examples every time, and torch leaves room for others."""

from __future__ import annotations

import os

import hypothesis
import pytest

os.environ.setdefault("OMP_NUM_THREADS", "2")  # torch reads it when it is first imported; most tests never do

hypothesis.settings.register_profile(
    "default",
    max_examples=20,
    derandomize=True,
    deadline=None,
    print_blob=False,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much],
)
hypothesis.settings.register_profile("thorough", parent=hypothesis.settings.get_profile("default"), max_examples=500)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def torch():
    """torch with two threads; a test that needs it says so by asking for it."""
    torch = pytest.importorskip("torch", reason="needs torch (the extra 'measure')")
    torch.set_num_threads(2)
    return torch
