"""What is built and installed: the catalogue travels in the wheel, and a checkout reads its own files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

import roofline
from roofline import catalog

ROOT = Path(__file__).resolve().parent.parent


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_a_checkout_reads_its_own_files():
    # an editable install leaves a copy of the catalogue in site-packages, which goes stale with the first edit
    assert Path(roofline.__file__).resolve().parent.parent == ROOT
    for room, name in (("hardware", "h100-sxm"), ("workloads", "decode"), ("workloads/models", "llama-3.1-8b")):
        assert catalog.find(room, name).resolve().is_relative_to(ROOT)


def test_the_version_is_written_once_in_effect():
    assert project()["version"] == roofline.__version__


def test_every_direct_dependency_is_pinned():
    pins = set(re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    extras = project()["optional-dependencies"].values()
    wanted = [*project()["dependencies"], *(text for extra in extras for text in extra)]
    names = {re.match(r"[A-Za-z0-9._-]+", text).group().lower().replace("_", "-") for text in wanted} - {"roofline"}
    assert names <= {pin.lower().replace("_", "-") for pin in pins}


def test_the_readme_leads_with_the_two_commands():
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    commands = blocks[0].strip().splitlines()
    assert commands == [
        (
            "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[measure]' "
            "&& .venv/bin/roofline analyze decode && .venv/bin/roofline validate decode"
        ),
        "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[dev]' && .venv/bin/pytest",
    ]
    assert commands[1].replace("pip install", "pip install -q") in (ROOT / ".ci/run").read_text()


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_finds_its_catalogue(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    site = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"], text=True
    ).strip()
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), site], check=True)
    # the dependencies come from this environment; its own .pth files, and so the checkout, do not
    environment = {"PYTHONPATH": sysconfig.get_paths()["purelib"], "PATH": os.defpath}
    show = (
        "import roofline, sys; from roofline.cli.main import run; print(roofline.__file__); sys.exit(run(sys.argv[1:]))"
    )
    for arguments in (["analyze", "decode.yaml"], ["hardware", "show", "h100"], ["workload", "list"]):
        done = subprocess.run(
            [python, "-c", show, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0].startswith(site)
