"""The rules of the house that no linter knows. Each check is a function of one file's text, tried on a bad text too."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 400
REPORTS = "docs/reports/"
MACHINE_MADE = {".lock", ".jsonl", ".avro", ".bin", ".svg", ".png"}

# Written so that this file does not match itself.
REGISTRY_HOSTS = re.compile(
    r"pypi\.org|pythonhosted\.org|maven\.org|maven\.apache\.org|npmjs\.org|crates\.io|debian\.org",
    re.IGNORECASE,
)
MACHINE_PATHS = re.compile(r"(?<![\w.$}/-])/(work|root)/\w")

Check = Callable[[str, str], list[str]]  # (path within the repository, text) → what is wrong, a line each


def test_no_file_is_over_400_lines() -> None:
    by_hand = [(path, text) for path, text in texts() if Path(path).suffix not in MACHINE_MADE and not path.startswith(REPORTS)]
    long = {path: len(text.splitlines()) for path, text in by_hand}
    assert {path: lines for path, lines in long.items() if lines > MAX_LINES} == {}


def foreign_kafka(path: str, text: str) -> list[str]:
    if path.startswith(("scheduler/kafka/", "tests/", "bench/")):
        return []
    return [
        f"{path}:{line}: imports {module}; only scheduler/kafka may"
        for module, line in imports(ast.parse(text))
        if module.split(".")[0] == "confluent_kafka"
    ]


def homeless_import(path: str, text: str) -> list[str]:
    """`import schemas` works here, by chance of the working directory, and takes the user's own package elsewhere."""
    return [
        f"{path}:{line}: imports {module}; import it as dueline.{module}"
        for module, line in imports(ast.parse(text))
        if module.split(".")[0] in {"schemas", "scheduler", "workers"}
    ]


def unawaited_sleep(path: str, text: str) -> list[str]:
    """A sleep in a test stands only between two looks at an event, named here or a line above: `# awaited: ...`."""
    if not path.startswith("tests/"):
        return []
    lines = text.splitlines()
    return [
        f"{path}:{line}: sleeps; wait for an event with a deadline, and name it: # awaited: ..."
        for line in sleeps(ast.parse(text))
        if not any(re.search(r"# awaited: \w", near) for near in lines[max(line - 2, 0) : line])
    ]


def impure_time(path: str, text: str) -> list[str]:
    """What the import contracts can't see: `datetime` is a pure module but for its readings of the clock."""
    if not path.startswith(("scheduler/core/", "schemas/")):
        return []
    return [
        f"{path}:{node.lineno}: reads the clock with .{node.func.attr}(); time is an argument"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"now", "utcnow", "today"}
        and ast.unparse(node.func.value).split(".")[-1] in {"datetime", "date"}
    ]


def hosts_and_machine_paths(path: str, text: str) -> list[str]:
    return [
        f"{path}:{number}: names {match.group()!r}; the house must stand anywhere"
        for number, line in enumerate(text.splitlines(), 1)
        for pattern in (REGISTRY_HOSTS, MACHINE_PATHS)
        if (match := pattern.search(line))
    ]


def reasonless_skip(path: str, text: str) -> list[str]:
    if not path.startswith("tests/"):
        return []
    return [
        f"{path}:{line}: skips without a reason"
        for node in ast.walk(ast.parse(text))
        if skips_silently(node) and (line := getattr(node, "lineno", 0))
    ]


PYTHON_CHECKS: list[Check] = [foreign_kafka, homeless_import, unawaited_sleep, impure_time, reasonless_skip]


@pytest.mark.parametrize("check", PYTHON_CHECKS, ids=lambda check: check.__name__)
def test_python_files_keep(check: Check) -> None:
    assert [wrong for path, text in texts() if path.endswith(".py") for wrong in check(path, text)] == []


def test_no_file_names_a_registry_host_or_a_machine_path() -> None:
    assert [wrong for path, text in texts() for wrong in hosts_and_machine_paths(path, text)] == []


@pytest.mark.parametrize(
    ("check", "path", "bad"),
    [
        (foreign_kafka, "workers/x.py", "import confluent_kafka.admin"),
        (foreign_kafka, "scheduler/leader/x.py", "def f():\n    from confluent_kafka import Producer"),
        (homeless_import, "scheduler/cli/x.py", "from workers.context import Context"),
        (unawaited_sleep, "tests/unit/x.py", "import time\ntime.sleep(1)"),
        (unawaited_sleep, "tests/unit/x.py", "import asyncio as a\nawait a.sleep(0)  # awaited:"),
        (unawaited_sleep, "tests/unit/x.py", "from time import sleep\nsleep(1)"),
        (impure_time, "scheduler/core/x.py", "import datetime as dt\ndt.datetime.now(dt.UTC)"),
        (impure_time, "schemas/x.py", "date.today()"),
        (reasonless_skip, "tests/unit/x.py", "@pytest.mark.skip\ndef test(): ..."),
        (reasonless_skip, "tests/unit/x.py", "@pytest.mark.skipif(True)\ndef test(): ..."),
        (reasonless_skip, "tests/unit/x.py", "pytest.skip()"),
        (hosts_and_machine_paths, "x.md", "see https://" + "pypi." + "org/simple"),
        (hosts_and_machine_paths, "x.sh", "cd " + "/" + "work/main"),
    ],
)
def test_each_check_finds_what_it_looks_for(check: Check, path: str, bad: str) -> None:
    assert len(check(path, bad)) == 1


def test_the_checks_let_good_text_pass() -> None:
    good = "import time\nwhile busy():\n    time.sleep(0.1)  # awaited: the broker's port\npytest.skip('no Docker')"
    assert [wrong for check in PYTHON_CHECKS for wrong in check("tests/x.py", good)] == []


# --- the project's own files ------------------------------------------------------------------------------------------


def test_every_dependency_says_what_it_is_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    said = [line for line in lines if re.search(r'^ *"[^"]+",\s+# \w', line)]
    assert [dep for dep in dependencies() if not any(f'"{dep}",' in line for line in said)] == []


def test_the_lock_has_every_dependency_at_an_allowed_version() -> None:
    locked = lock()
    wanted = [(dep, Requirement(dep)) for dep in dependencies()]
    have = [(dep, spec.specifier, locked.get(canonicalize_name(spec.name))) for dep, spec in wanted]
    assert [f"{dep}: locked at {at}; make lock" for dep, allowed, at in have if at is None or at not in allowed] == []


def test_every_locked_package_has_a_checksum() -> None:
    entries = re.split(r"\n(?=[a-z0-9])", (ROOT / "requirements.lock").read_text())[1:]
    assert len(entries) == len(lock()) >= len(dependencies())
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_every_test_file_stands_where_pytest_looks() -> None:
    testpaths = tuple(f"{path}/" for path in project()["tool"]["pytest"]["ini_options"]["testpaths"])
    tests = [path for path, _ in texts() if re.search(r"(^|/)test_\w+\.py$", path)]
    assert [path for path in tests if not path.startswith(testpaths)] == []


@pytest.mark.parametrize("name", ["schemas", "scheduler", "workers"])
def test_the_import_package_is_a_folder_of_relative_links(name: str) -> None:
    link = ROOT / "dueline" / name
    assert link.is_symlink(), f"{link} is no link: was the clone made without core.symlinks?"
    assert os.readlink(link) == f"../{name}"


def test_every_source_folder_is_a_package() -> None:
    """setuptools takes only folders with an __init__.py: one without is missing in the wheel, and only there."""
    folders = {Path(path).parent for path, _ in texts() if path.endswith(".py")}
    ours = {folder for folder in folders if folder.parts and folder.parts[0] in {"schemas", "scheduler", "workers"}}
    assert ours >= {Path("schemas"), Path("scheduler/core"), Path("workers")}
    assert [str(folder) for folder in sorted(ours) if not (ROOT / folder / "__init__.py").is_file()] == []


def test_ci_runs_what_a_person_runs() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
    text = (ROOT / ".ci/run").read_text()
    assert "\nmake test && exit 0\n" in text
    assert text.rstrip().endswith("--last-failed --last-failed-no-failures none"), "only what failed may run again, once"


# --- steps ------------------------------------------------------------------------------------------------------------


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of every file of the repository that is text, links not followed, ignored folders left out."""
    ignored = [".git/", *(ROOT / ".gitignore").read_text().split()]

    def is_ignored(folder: str, name: str) -> bool:
        at_root = Path(folder) == ROOT
        return any(
            fnmatch.fnmatch(name, pattern.strip("/")) for pattern in ignored if at_root or not pattern.startswith("/")
        )

    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if not is_ignored(folder, name))
        for name in sorted(files):
            path = Path(folder, name)
            if is_ignored(folder, name) or path.is_symlink():
                continue
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue  # golden bytes and the like


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module, node.lineno


def sleeps(tree: ast.AST) -> Iterator[int]:
    """Lines that call time.sleep or asyncio.sleep, under whatever name."""
    clocks = {"time", "asyncio"}
    modules: set[str] = set()
    functions: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name in clocks}
        elif isinstance(node, ast.ImportFrom) and node.module in clocks:
            functions |= {alias.asname or alias.name for alias in node.names if alias.name == "sleep"}
    names = functions | {f"{module}.sleep" for module in modules}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            yield node.lineno


def skips_silently(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return any(ast.unparse(decorator) == "pytest.mark.skip" for decorator in node.decorator_list)
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    has_reason = any(keyword.arg == "reason" for keyword in node.keywords)
    if name == "pytest.skip":
        return not (node.args or has_reason)
    return name in {"pytest.mark.skip", "pytest.mark.skipif"} and not has_reason


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def dependencies() -> list[str]:
    data = project()
    extras = data["project"]["optional-dependencies"].values()
    groups = data["dependency-groups"].values()
    return [dep for deps in (data["project"]["dependencies"], *extras, *groups) for dep in deps]


def lock() -> dict[str, str]:
    """Package → its locked version."""
    pins = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    return dict(pins)
