"""The wheel, installed outside the clone, in a project with its own `schemas`, `workers` and `scheduler` packages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("schemas", "scheduler", "workers")

USERS_APP = """
import importlib.resources, json
import schemas, workers, scheduler
import dueline, dueline.schemas, dueline.workers, dueline.scheduler.cli.main
print(json.dumps({
    "users": [schemas.OWNER, scheduler.OWNER, workers.OWNER],
    "files": [m.__file__ for m in (dueline, dueline.schemas, dueline.workers, dueline.scheduler.cli.main)],
    "avsc": sorted(f.name for f in importlib.resources.files("dueline.schemas").iterdir() if f.name.endswith(".avsc")),
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the source archive as an index would: what the archive lacks, the wheel lacks."""
    home = tmp_path_factory.mktemp("build")
    clone = home / "clone"
    ignore = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
    shutil.copytree(ROOT, clone, symlinks=True, ignore=ignore)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(home / "dist"), str(clone)], cwd=home)
    (made,) = (home / "dist").glob("*.whl")
    return made


@pytest.fixture(scope="module")
def outside(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project with an environment of its own. Dependencies come from ours, never from a network."""
    home = tmp_path_factory.mktemp("outside")
    venv.create(home / "venv", with_pip=False, symlinks=True)
    python = home / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index"]
    run([*pip, str(wheel)], cwd=home)
    # A path named in a .pth file is searched, but the .pth files in it are not run: our editable install stays out.
    site = home / f"venv/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    project = home / "project"
    for name in FOLDERS:
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text(f"OWNER = 'the user of {name}'\n")
    (project / "app.py").write_text(USERS_APP)
    return home


def test_the_wheel_holds_every_source_and_data_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    dist_info = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    assert any(name.endswith("/licenses/LICENSE") for name in dist_info)
    assert names - dist_info == {"dueline/__init__.py", "dueline/py.typed"} | shipped()


def test_it_works_beside_the_users_own_packages(outside: Path) -> None:
    said = json.loads(run([str(outside / "venv/bin/python"), "app.py"], cwd=outside / "project"))
    assert said["users"] == [f"the user of {name}" for name in FOLDERS]
    assert [file for file in said["files"] if not Path(file).is_relative_to(outside / "venv")] == []
    assert said["avsc"] == sorted(path.name for path in (ROOT / "schemas").glob("*.avsc"))
    assert said["avsc"], "no schema in the package"


def test_the_command_runs_there(outside: Path) -> None:
    said = run([str(outside / "venv/bin/dueline"), "--help"], cwd=outside / "project")
    assert [word for word in ("init", "dev", "scheduler", "worker", "jobs", "audit") if word not in said] == []


# --- steps ------------------------------------------------------------------------------------------------------------


def shipped() -> set[str]:
    """What the tree says the wheel must hold, as names in the wheel: every file of the three folders."""
    files = {path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()}
    return {f"dueline/{path.relative_to(ROOT).as_posix()}" for path in files if "__pycache__" not in path.parts}


def run(command: list[str], *, cwd: Path) -> str:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, text=True, capture_output=True, timeout=100, check=False)
    assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
