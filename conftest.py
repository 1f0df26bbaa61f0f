"""Options of the test suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--regenerate`` rewrites the golden files of tests/render."""
    parser.addoption("--regenerate", action="store_true", help="rewrite golden files instead of comparing with them")
