"""Who may import whom. Imports for annotations alone (`TYPE_CHECKING`) are free of charge."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP_LEVEL = ("rbln_stack", "components", "agents", "policies", "simulator", "toolchain")
PULUMI = ("pulumi", "pulumi_kubernetes", "pulumi_policy")

# Where a file lies → which packages of the project it may import, and whether Pulumi; the first
# match counts. Nothing may import tests; the embedded cluster alone knows that its devices are
# simulated.
ALLOWED: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("rbln_stack/contract.py", (), False),
    ("rbln_stack/cli/", ("rbln_stack", "components", "policies", "toolchain"), True),
    ("rbln_stack/", ("rbln_stack",), False),
    ("components/", ("components", "rbln_stack"), True),
    ("agents/", ("agents", "rbln_stack.contract"), False),
    ("policies/", ("policies", "rbln_stack.contract"), True),
    (
        "toolchain/cluster/",
        ("toolchain", "simulator", "rbln_stack.kube", "rbln_stack.errors"),
        False,
    ),
    ("toolchain/", ("toolchain",), False),
    ("simulator/", ("simulator", "agents", "rbln_stack"), False),
    ("__main__.py", ("components", "rbln_stack"), True),
)


def sources() -> list[str]:
    files = [ROOT / "__main__.py"]
    for top in TOP_LEVEL:
        files += sorted((ROOT / top).rglob("*.py"))
    return [str(path.relative_to(ROOT)) for path in files]


def imported(tree: ast.AST) -> set[str]:
    """Dotted names a file imports at run time, `from a import b` as `a.b`."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        else:
            names |= imported(node)
    return names


def below(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize("source", sources())
def test_imports_go_one_way(source: str) -> None:
    names = imported(ast.parse((ROOT / source).read_text(encoding="utf-8")))
    packages, with_pulumi = next(rule[1:] for rule in ALLOWED if source.startswith(rule[0]))
    own = {name for name in names if name.partition(".")[0] in (*TOP_LEVEL, "tests")}
    assert not {name for name in own if not any(below(name, package) for package in packages)}
    if not with_pulumi:
        assert not {name for name in names if name.partition(".")[0] in PULUMI}


@pytest.mark.parametrize("source", [name for name in sources() if name.startswith("agents/")])
def test_no_agent_imports_another(source: str) -> None:
    parts = Path(source).parts
    names = imported(ast.parse((ROOT / source).read_text(encoding="utf-8")))
    allowed = {"agents.common", f"agents.{parts[1]}"}
    assert all(
        any(below(name, place) for place in allowed) for name in names if below(name, "agents")
    )


@pytest.mark.parametrize("source", [name for name in sources() if name.endswith("__init__.py")])
def test_package_files_hold_a_docstring_only(source: str) -> None:
    tree = ast.parse((ROOT / source).read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    assert len(tree.body) == 1


def test_rules_catch_what_they_forbid() -> None:
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import pulumi\n"
        "def f():\n    from simulator import nodes\n"
    )
    assert imported(tree) == {"typing.TYPE_CHECKING", "simulator.nodes"}
