"""Packages are unpacked, never installed; half-made trees are never used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolchain.debian import (
    DebTree,
    Finished,
    apt_config,
    extract,
    library_dirs,
    missing_apt,
    obtain,
    recorded,
)
from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class FakeApt:
    """Stands for apt-get and dpkg-deb: a package `p` holds the program `usr/sbin/p`."""

    def __init__(self, fail: str = "") -> None:
        self.calls: list[list[str]] = []
        self.fail = fail

    def __call__(self, argv: Sequence[str], env: Mapping[str, str]) -> Finished:
        del env
        self.calls.append(list(argv))
        if self.fail and self.fail in argv:
            return Finished(100, "E: first line\nE: no such thing")
        if argv[0] == "apt-get" and "install" in argv:
            archives = Path(argv[2]).parent / "cache/archives"
            for package in argv[argv.index("install") + 1 :]:
                (archives / f"{package}_1_amd64.deb").touch()
        if argv[0] == "dpkg-deb":
            program = Path(argv[3]) / "usr/sbin" / Path(argv[2]).name.split("_")[0]
            program.parent.mkdir(parents=True, exist_ok=True)
            program.touch(mode=0o755)
        return Finished(0, "")


@pytest.fixture(autouse=True)
def _has_apt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.debian.shutil.which", lambda name: f"/usr/bin/{name}")


def quiet(line: str) -> None:
    del line


def test_failed_download_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match=r"(?s)code 100.*no such thing.*check the network"):
        extract(["nft"], tmp_path / "tree", log=quiet, run=FakeApt(fail="install"))
    assert list(tmp_path.iterdir()) == []


def test_failed_unpacking_keeps_the_old_tree(tmp_path: Path) -> None:
    into = tmp_path / "tree"
    extract(["nft"], into, log=quiet, run=FakeApt())
    with pytest.raises(ToolchainError, match="cannot be unpacked"):
        extract(["runc"], into, log=quiet, run=FakeApt(fail="-x"))
    assert recorded(into) == {"nft"}
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_system_without_apt_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolchain.debian.shutil.which", lambda _: None)
    with pytest.raises(ToolchainError) as caught:
        extract(["nftables", "runc"], tmp_path / "tree", log=quiet, run=FakeApt())
    assert str(caught.value) == str(missing_apt(["nftables", "runc"]))
    assert "install by hand, with your system's package manager: nftables, runc" in str(
        caught.value
    )


def test_nothing_fetched_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="apt fetched nothing for nft"):
        extract(["nft"], tmp_path / "tree", log=quiet, run=lambda *_: Finished(0, ""))


def test_apt_runs_with_private_state_and_without_hooks(tmp_path: Path) -> None:
    apt = FakeApt()
    extract(["nft"], tmp_path / "tree", log=quiet, run=apt)
    update, install = apt.calls[0], apt.calls[1]
    assert update[1] == install[1] == "-c"
    assert {"--download-only", "--no-install-recommends"} <= set(install)
    text = apt_config(Path("/p"), Path("/s"))
    assert 'Dir::State "/p/state";' in text
    assert 'Dir::State::status "/s";' in text
    assert 'Dir::Cache "/p/cache";' in text
    assert "#clear APT::Update::Post-Invoke;" in text


def test_finished_tree_is_used_again(tmp_path: Path) -> None:
    into = tmp_path / "tree"
    extract(["nft", "runc"], into, log=quiet, run=FakeApt())
    again = FakeApt()
    assert extract(["runc"], into, log=quiet, run=again) == DebTree(into)
    assert again.calls == []


def test_tree_grows_and_loses_no_package(tmp_path: Path) -> None:
    into = tmp_path / "tree"
    extract(["nft"], into, log=quiet, run=FakeApt())
    tree = extract(["runc"], into, log=quiet, run=FakeApt())
    assert tree.find("nft")
    assert tree.find("runc")
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


def test_only_missing_programs_are_fetched(tmp_path: Path) -> None:
    apt = FakeApt()
    look = {"sh": "/bin/sh"}.get
    tools = obtain(
        {"sh": "dash", "runc": "runc"}, tmp_path / "tree", log=quiet, run=apt, which=look
    )
    assert tools.paths == {"sh": Path("/bin/sh"), "runc": tmp_path / "tree/usr/sbin/runc"}
    assert "dash" not in apt.calls[1]


def test_nothing_is_done_when_all_is_present(tmp_path: Path) -> None:
    tools = obtain({"sh": "dash"}, tmp_path / "tree", log=quiet, which=lambda _: "/bin/sh")
    assert tools.tree is None
    assert tools.environment({"PATH": "/bin"}) == {"PATH": "/bin"}


def test_package_without_the_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="package nftables holds no program nft"):
        obtain(
            {"nft": "nftables"},
            tmp_path / "tree",
            log=quiet,
            run=FakeApt(),
            which=lambda _: None,
        )


def test_links_of_alternatives_are_made(tmp_path: Path) -> None:
    tree = extract(["iptables-nft"], tmp_path / "tree", log=quiet, run=FakeApt())
    assert tree.find("iptables") == tmp_path / "tree/usr/sbin/iptables"


def test_environment_puts_the_tree_first(tmp_path: Path) -> None:
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    (libraries / "xtables").mkdir(parents=True)
    (tmp_path / "usr/bin").mkdir(parents=True)
    (libraries / "libx.so.1").touch()
    env = DebTree(tmp_path).environment({"PATH": "/bin", "HOME": "/h"})
    assert env == {
        "PATH": f"{tmp_path}/usr/bin:/bin",
        "HOME": "/h",
        "LD_LIBRARY_PATH": str(libraries),
        "XTABLES_LIBDIR": str(libraries / "xtables"),
    }


def test_directories_without_libraries_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/systemd").mkdir(parents=True)
    assert library_dirs(tmp_path) == []
