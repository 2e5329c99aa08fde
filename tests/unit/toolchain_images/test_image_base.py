"""The base is made from the distribution's own sources and keeps nothing of the machine."""

from __future__ import annotations

import dataclasses
import io
import tarfile
from pathlib import Path

import pytest

from toolchain.errors import ToolchainError
from toolchain.images.base import (
    Recipe,
    codename,
    debian_architecture,
    mmdebstrap_argv,
    python_of,
    scratch_parent,
    source_files,
    transport_options,
)

RECIPE = Recipe(suite="bookworm", architecture="amd64")
DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main
"""


def test_system_without_codename_is_named() -> None:
    with pytest.raises(ToolchainError, match="names no VERSION_CODENAME"):
        codename("ID=other\n")


def test_codename_with_quotes() -> None:
    assert codename('ID=ubuntu\nVERSION_CODENAME="noble"\n') == "noble"


@pytest.mark.parametrize(
    ("name", "text", "taken"),
    [
        ("debian.sources", DEB822, True),
        ("off.sources", DEB822 + "Enabled: no\n", False),
        ("src.sources", DEB822.replace("deb\n", "deb-src\n", 1), False),
        ("node.sources", DEB822.replace("bookworm", "nodistro"), False),
        ("sources.list", "deb [signed-by=/k a=b] http://m.example/d bookworm main contrib\n", True),
        ("engine.list", "deb https://e.example/linux bookworm stable\n", False),
        ("comment.list", "# deb http://m.example/d bookworm main\n", False),
    ],
)
def test_only_the_distributions_sources_are_taken(name: str, text: str, *, taken: bool) -> None:
    assert source_files({Path(name): text}, "bookworm") == ([Path(name)] if taken else [])


def test_ways_to_the_sources_are_kept_and_nothing_else() -> None:
    dump = """\
APT::Update::Post-Invoke:: "rm -f x";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::Check-Valid-Until "false";
Acquire::Languages:: "none";
"""
    assert transport_options(dump, Path("/a")).splitlines() == [
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::Check-Valid-Until "false";',
        'Dir::Etc::netrc "/a/auth.conf";',
        'Dir::Etc::netrcparts "/a/auth.conf.d";',
    ]


def test_call_names_suite_target_and_sources_last() -> None:
    argv = mmdebstrap_argv(
        Path("/t/mmdebstrap"), RECIPE, Path("/o.tar"), options=Path("/opt"), sources=[Path("/s")]
    )
    assert argv[0] == "/t/mmdebstrap"
    assert argv[-3:] == ["bookworm", "/o.tar", "/s"]
    assert "--include=python3" in argv
    assert "--dpkgopt=path-exclude=/usr/share/man/*" in argv


def test_hooks_never_remove_below_the_systems_mounts() -> None:
    removing = [hook for hook in RECIPE.after if "rm -rf" in hook]
    assert removing
    for hook in removing:
        assert hook.startswith('cd "$1" && rm -rf ')
        paths = hook.removeprefix('cd "$1" && rm -rf ').split()
        assert {path.split("/")[0] for path in paths} <= {"etc", "usr", "var"}


def test_every_field_of_the_recipe_changes_its_key() -> None:
    changed = [
        dataclasses.replace(RECIPE, suite="trixie"),
        dataclasses.replace(RECIPE, architecture="arm64"),
        dataclasses.replace(RECIPE, packages=("python3",)),
        dataclasses.replace(RECIPE, excluded=()),
        dataclasses.replace(RECIPE, before=()),
        dataclasses.replace(RECIPE, after=()),
        dataclasses.replace(RECIPE, variant="minbase"),
        dataclasses.replace(RECIPE, epoch_s=1),
    ]
    assert (
        len({recipe.key() for recipe in [RECIPE, *changed]}) == len(dataclasses.fields(Recipe)) + 1
    )
    assert Recipe(suite="bookworm", architecture="amd64").key() == RECIPE.key()


def test_scratch_needs_a_directory_that_exists(tmp_path: Path) -> None:
    assert scratch_parent([tmp_path / "absent"]) is None


@pytest.mark.parametrize(
    ("machine", "word"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")]
)
def test_architecture_words(machine: str, word: str) -> None:
    assert debian_architecture(machine) == word


def tar_with(path: Path, name: str) -> Path:
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


def test_python_version_is_read_from_the_tar(tmp_path: Path) -> None:
    assert python_of(tar_with(tmp_path / "a.tar", "./usr/lib/python3.13/os.py")) == "3.13"


def test_base_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="holds no Python"):
        python_of(tar_with(tmp_path / "a.tar", "./usr/lib/os.py"))
