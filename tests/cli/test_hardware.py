"""``roofline hardware``: what lint prints and ends with, and what one bad file does to the list."""

from __future__ import annotations

from tests.hardware_files import CHECKOUT, written


def test_lint_takes_names_and_paths(roofline, tmp_path):
    path = written(tmp_path, "h100-sxm", {"sources/blog": "a blog"})
    outcome = roofline("hardware", "lint", "h100-sxm", str(path))
    assert outcome.code == 0
    first, second = outcome.out.splitlines()
    assert first == f"{CHECKOUT / 'hardware' / 'h100-sxm.yaml'}: ok"
    assert second.startswith(f"{path}:")
    assert ": warning: source 'blog' is not used" in second


def test_lint_ends_with_the_worst_of_its_files(roofline, tmp_path):
    wrong = written(tmp_path, "h100-sxm", {"peaks/tensor:bf16/value": "1979 TFLOP/s"})
    (tmp_path / "list.yaml").write_text("- 1\n")
    assert roofline("hardware", "lint", str(wrong)).code == 1
    for unreadable in ("absent.yaml", "list.yaml", "./", "h1000"):
        outcome = roofline("hardware", "lint", unreadable, str(wrong))
        assert outcome.code == 2
        assert ": error: " in outcome.out.splitlines()[0]
        assert str(wrong) in outcome.out, "the other files are checked all the same"


def test_lint_skips_the_file_of_aliases(roofline):
    outcome = roofline("hardware", "lint", str(CHECKOUT / "hardware" / "aliases.yaml"))
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.strip().endswith("skipped")


def test_a_bad_file_of_ones_own_hides_no_other(roofline, tmp_path, monkeypatch):
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "mine.yaml").write_text("name: mine\n")
    monkeypatch.setenv("ROOFLINE_PATH", str(tmp_path))
    outcome = roofline("hardware", "list", "h100*")
    assert outcome.code == 0
    assert "h100-sxm" in outcome.out
    assert "mine.yaml" in outcome.err
