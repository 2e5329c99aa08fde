"""Programs out of Debian or Ubuntu packages, unpacked into a directory and never installed.

Called by the image builder and by the embedded cluster for programs such as `buildah`, `nft` and
`runc`. apt runs with state of its own: it reads the system's sources and its list of installed
packages, so that only what is missing here is fetched. It must never write to the system's apt or
dpkg directories; the system's hooks are therefore cleared too, since some images empty the
system's package cache in them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.errors import ToolchainError

Log = Callable[[str], None]

PROGRAM_DIRS = ("usr/sbin", "usr/bin", "sbin", "bin", "usr/local/sbin", "usr/local/bin")
DPKG_STATUS = Path("/var/lib/dpkg/status")
RECORD = ".packages.json"

# Names that a package's install script makes as links; unpacking alone does not.
ALTERNATIVES = {
    "iptables": "iptables-nft",
    "iptables-save": "iptables-nft-save",
    "iptables-restore": "iptables-nft-restore",
    "ip6tables": "ip6tables-nft",
    "ip6tables-save": "ip6tables-nft-save",
    "ip6tables-restore": "ip6tables-nft-restore",
}


@dataclass(frozen=True, slots=True)
class Finished:
    """Exit code and joined output of a program."""

    code: int
    output: str

    def tail(self, lines: int = 8) -> str:
        """The last lines, where programs say what went wrong."""
        return "\n".join(self.output.strip().splitlines()[-lines:])


Runner = Callable[[Sequence[str], Mapping[str, str]], Finished]


def run_program(argv: Sequence[str], env: Mapping[str, str]) -> Finished:
    """Run a program to its end, without input, with exactly the given environment."""
    done = subprocess.run(
        list(argv),
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Finished(done.returncode, done.stdout)


@dataclass(frozen=True, slots=True)
class DebTree:
    """A directory of unpacked packages."""

    root: Path

    def find(self, program: str) -> Path | None:
        """The program's path in the tree, or None."""
        for folder in PROGRAM_DIRS:
            path = self.root / folder / program
            if path.is_file() and os.access(path, os.X_OK):
                return path
        return None

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """`base` (default: nothing) with what the tree's programs need put in front."""
        result = dict(base or {})
        for name, folders in self._search_paths().items():
            if folders:
                old = [result[name]] if result.get(name) else []
                result[name] = os.pathsep.join([*map(str, folders), *old])
        modules = sorted(self.root.glob("usr/lib/*/xtables"))
        if modules:
            result["XTABLES_LIBDIR"] = str(modules[0])
        return result

    def _search_paths(self) -> dict[str, list[Path]]:
        root = self.root
        perl = [
            path
            for pattern in ("usr/share/perl5", "usr/lib/*/perl5", "usr/lib/*/perl5/*")
            for path in sorted(root.glob(pattern))
            if path.is_dir() and (pattern != "usr/lib/*/perl5/*" or path.name[:1].isdigit())
        ]
        return {
            "PATH": [root / folder for folder in PROGRAM_DIRS if (root / folder).is_dir()],
            "LD_LIBRARY_PATH": library_dirs(root),
            "PERL5LIB": perl,
        }


@dataclass(frozen=True, slots=True)
class Tools:
    """Where each wanted program is, and the tree of those that the system lacks."""

    paths: Mapping[str, Path]
    tree: DebTree | None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the tree's search paths in front, when there is a tree."""
        return dict(base) if self.tree is None else self.tree.environment(base)


def library_dirs(root: Path) -> list[Path]:
    """Directories of the tree that hold shared libraries: the multiarch ones, then the plain."""
    patterns = ("usr/lib/*-linux-*", "lib/*-linux-*", "usr/lib", "lib")
    found = [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.is_dir()]
    return [path for path in found if any(path.glob("*.so*"))]


def apt_config(state: Path, status: Path = DPKG_STATUS) -> str:
    """Settings that give apt private state; read after the system's own, so that these win."""
    return "\n".join(
        [
            f'Dir::State "{state}/state";',
            f'Dir::State::lists "{state}/lists";',
            f'Dir::State::status "{status}";',
            f'Dir::Cache "{state}/cache";',
            f'Dir::Log "{state}/log";',
            'Debug::NoLocking "true";',
            'APT::Install-Recommends "false";',
            'APT::Install-Suggests "false";',
            # The unprivileged download user cannot reach a cache below a home directory.
            'APT::Sandbox::User "";' if os.geteuid() else 'APT::Sandbox::User "root";',
            'Acquire::Languages "none";',
            'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";',
            'Acquire::IndexTargets::deb::CNF::DefaultEnabled "false";',
            "#clear APT::Update::Pre-Invoke;",
            "#clear APT::Update::Post-Invoke;",
            "#clear APT::Update::Post-Invoke-Success;",
            "#clear DPkg::Pre-Invoke;",
            "#clear DPkg::Post-Invoke;",
            "#clear DPkg::Pre-Install-Pkgs;",
            "",
        ]
    )


def private_apt(state: Path) -> Path:
    """Make apt's private directories below `state`; returns the settings file for `-c`."""
    for folder in ("state", "lists/partial", "cache/archives/partial", "log"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    config = state / "apt.conf"
    config.write_text(apt_config(state))
    return config


def missing_apt(packages: Sequence[str]) -> ToolchainError:
    """The error for a system without apt."""
    names = ", ".join(packages)
    return ToolchainError(
        f"this system has no apt-get and dpkg-deb, so {names} cannot be fetched",
        f"install by hand, with your system's package manager: {names}",
    )


def recorded(tree: Path) -> frozenset[str]:
    """The packages a finished tree was asked for; empty when there is no such tree."""
    try:
        return frozenset(json.loads((tree / RECORD).read_text())["asked"])
    except (OSError, ValueError, KeyError):
        return frozenset()


def extract(packages: Sequence[str], into: Path, *, log: Log, run: Runner = run_program) -> DebTree:
    """Unpack packages, and those of their dependencies that this system lacks, below `into`.

    A tree that holds them already is returned as it is; one that lacks some is made anew with
    all. A new tree appears under its name only when it is complete.
    """
    before = recorded(into)
    if before.issuperset(packages):
        return DebTree(into)
    packages = sorted(before.union(packages))
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise missing_apt(packages)
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=f".{into.name}-") as scratch:
        work = Path(scratch)
        archives = _download(packages, work / "apt", log=log, run=run)
        tree = work / "tree"
        tree.mkdir()
        for archive in archives:
            _unpack(archive, tree, run=run)
        _link_alternatives(tree)
        record = {"asked": sorted(packages), "archives": [path.name for path in archives]}
        (tree / RECORD).write_text(json.dumps(record, indent=1))
        replace_dir(tree, into, aside=work / "old")
    log(f"unpacked {len(archives)} packages into {into}")
    return DebTree(into)


def replace_dir(new: Path, place: Path, *, aside: Path) -> None:
    """Give `new` the name `place`; what was there goes to `aside`."""
    if place.exists():
        place.rename(aside)
    new.rename(place)


def obtain(
    programs: Mapping[str, str],
    into: Path,
    *,
    log: Log,
    run: Runner = run_program,
    which: Callable[[str], str | None] | None = None,
) -> Tools:
    """Find programs (name → package) on this system; unpack packages only for the missing ones."""
    look = which or _which_with_sbin
    present = {name: Path(path) for name in programs if (path := look(name)) is not None}
    missing = {name: package for name, package in programs.items() if name not in present}
    if not missing:
        return Tools(present, None)
    tree = extract(sorted(set(missing.values())), into, log=log, run=run)
    found = {name: tree.find(name) for name in missing}
    for name, place in found.items():
        if place is None:
            raise ToolchainError(
                f"package {missing[name]} holds no program {name} (unpacked in {into})",
                "name the right package for this distribution, or install the program",
            )
    return Tools({**present, **{name: place for name, place in found.items() if place}}, tree)


def _which_with_sbin(program: str) -> str | None:
    # A user's PATH often lacks the administrator's directories, where nft and iptables live.
    folders = [os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"]
    return shutil.which(program, path=os.pathsep.join(folders))


def _download(packages: Sequence[str], state: Path, *, log: Log, run: Runner) -> list[Path]:
    config = private_apt(state)
    env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    env.pop("APT_CONFIG", None)
    log("reading the package lists of this system's sources")
    _apt(["apt-get", "-c", str(config), "-qq", "update"], env, run)
    log(f"fetching {', '.join(packages)} and what they need")
    # --reinstall: a package that is installed but whose program was removed is fetched as well.
    flags = ["-y", "-qq", "--download-only", "--reinstall", "--no-install-recommends"]
    _apt(["apt-get", "-c", str(config), *flags, "install", *packages], env, run)
    archives = sorted((state / "cache/archives").glob("*.deb"))
    if not archives:
        raise ToolchainError(
            f"apt fetched nothing for {', '.join(packages)}",
            "check that the system's package sources still offer them (apt-cache policy)",
        )
    return archives


def _apt(argv: Sequence[str], env: Mapping[str, str], run: Runner) -> None:
    done = run(argv, env)
    if done.code:
        raise ToolchainError(
            f"`{' '.join(argv)}` failed with code {done.code}; its last lines:\n{done.tail()}\n",
            "check the network, the system's package sources and the packages' names",
        )


def _unpack(archive: Path, tree: Path, *, run: Runner) -> None:
    done = run(["dpkg-deb", "-x", str(archive), str(tree)], os.environ)
    if done.code:
        raise ToolchainError(
            f"{archive.name} cannot be unpacked; its last lines:\n{done.tail()}\n",
            f"check that there is room below {tree.parent}, then try again",
        )


def _link_alternatives(tree: Path) -> None:
    for name, target in ALTERNATIVES.items():
        for folder in PROGRAM_DIRS:
            if (tree / folder / target).exists() and not (tree / folder / name).exists():
                (tree / folder / name).symlink_to(target)
