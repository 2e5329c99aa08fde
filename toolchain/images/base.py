"""The base root filesystem for machines that can reach package sources but no image registry.

Called by the image builder and by whoever needs a Debian or Ubuntu root with Python. mmdebstrap
makes it from the system's own package sources; nothing of these sources, of proxies or of keys
may stay in the result. It is kept as a tar named after its recipe, and is made once.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.debian import Log, Runner, Tools, obtain, run_program
from toolchain.errors import ToolchainError
from toolchain.images.digests import file_sha256

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EPOCH_S = 0
NEEDED_TMP_BYTES = 1 << 30
APT_DIR = Path("/etc/apt")
OS_RELEASE = Path("/etc/os-release")
TMPFS = Path("/dev/shm")  # noqa: S108 - a mount point, in which a private directory is made

# How apt reaches its sources; everything else of the system's settings stays out.
TRANSPORT = re.compile(
    r"Acquire::(https?|ftp|tor|socks|Retries|ForceIPv[46]|Check-Valid-Until|Check-Date"
    r"|Max-ValidTime|AllowInsecureRepositories|AllowWeakRepositories)(::|\s)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that decides the base's content, except the package versions of the day."""

    suite: str
    architecture: str
    packages: tuple[str, ...] = ("?essential", "usr-is-merged", "python3", "mount")
    excluded: tuple[str, ...] = (
        "/usr/share/man/*",
        "/usr/share/info/*",
        "/usr/share/doc/*",
        "/usr/share/locale/*",
        "/usr/share/bug/*",
        "/usr/share/lintian/*",
        "/usr/lib/*/gconv/*",
    )
    # usr-is-merged, chosen together with the essential packages, keeps usrmerge and with it the
    # whole of perl out; it wants the links to be there before the first package.
    before: tuple[str, ...] = (
        'for d in bin sbin lib; do mkdir -p "$1/usr/$d"; ln -s "usr/$d" "$1/$d"; done',
        'case "$(uname -m)" in x86_64) mkdir -p "$1/usr/lib64"; ln -s usr/lib64 "$1/lib64";; esac',
    )
    after: tuple[str, ...] = (
        # Hash-based byte code stays valid when an image builder resets the files' times.
        'cd "$1" && rm -rf usr/lib/python3*/pydoc_data usr/lib/python3*/test',
        (
            'PYTHONHASHSEED=0 chroot "$1" sh -c "python3 -m compileall -q -f -j1'
            ' --invalidation-mode unchecked-hash /usr/lib/python3*" > /dev/null'
        ),
        # Only plain directories here: /dev, /proc and /sys are the system's own at this point.
        (
            'cd "$1" && rm -rf etc/apt/sources.list etc/apt/sources.list.d/*'
            " etc/apt/apt.conf.d/99mmdebstrap etc/dpkg/dpkg.cfg.d/99mmdebstrap"
        ),
        'cd "$1" && rm -rf var/cache/debconf/*-old var/cache/apt var/lib/apt/lists var/log/*',
    )
    variant: str = "custom"
    epoch_s: int = EPOCH_S

    def key(self) -> str:
        """Short name of this recipe; another recipe has another one."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Base:
    """A finished base: its tar, the tar's digest and the minor version of its Python (`3.11`)."""

    tar: Path
    digest: str
    python: str


def codename(os_release: str) -> str:
    """The suite that this system follows, from the text of its os-release file."""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    name = fields.get("VERSION_CODENAME", "").strip().strip('"')
    if not name:
        raise ToolchainError(
            f"{OS_RELEASE} names no VERSION_CODENAME, so the base's suite is unknown",
            "build the image where a Python base image can be pulled (images/README.md)",
        )
    return name


def source_files(texts: Mapping[Path, str], suite: str) -> list[Path]:
    """Those of apt's source files that offer the suite's `main`; others are third parties'."""
    return sorted(path for path, text in texts.items() if _offers(path, text, suite))


def _offers(path: Path, text: str, suite: str) -> bool:
    if path.suffix == ".sources":
        stanzas = (_fields(part) for part in re.split(r"\n\s*\n", text))
        return any(
            "deb" in stanza.get("types", "").split()
            and suite in stanza.get("suites", "").split()
            and "main" in stanza.get("components", "").split()
            and stanza.get("enabled", "yes").lower() not in {"no", "false", "0"}
            for stanza in stanzas
        )
    lines = (re.sub(r"\[[^\]]*\]", "", line).split() for line in text.splitlines())
    return any(
        words[:1] == ["deb"] and words[2:3] == [suite] and "main" in words for words in lines
    )


def _fields(stanza: str) -> dict[str, str]:
    lines = [line for line in stanza.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\n[ \t]+", " ", "\n".join(lines))
    pairs = (line.split(":", 1) for line in joined.splitlines() if ":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}


def transport_options(dump: str, apt_dir: Path = APT_DIR) -> str:
    """From `apt-config dump`: proxies and other ways to the sources, and where passwords are."""
    kept = [line for line in dump.splitlines() if TRANSPORT.match(line)]
    netrc = f'Dir::Etc::netrc "{apt_dir}/auth.conf";'
    return "\n".join([*kept, netrc, f'Dir::Etc::netrcparts "{apt_dir}/auth.conf.d";', ""])


def mmdebstrap_argv(
    program: Path, recipe: Recipe, out: Path, *, options: Path, sources: Sequence[Path]
) -> list[str]:
    """The one call that makes the base."""
    return [
        str(program),
        "--format=tar",
        "--skip=output/dev",
        f"--variant={recipe.variant}",
        f"--architectures={recipe.architecture}",
        *(f"--include={package}" for package in recipe.packages),
        f"--aptopt={options}",
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.excluded),
        *(f"--setup-hook={command}" for command in recipe.before),
        *(f"--customize-hook={command}" for command in recipe.after),
        recipe.suite,
        str(out),
        *map(str, sources),
    ]


def scratch_parent(candidates: Sequence[Path]) -> Path | None:
    """The first directory with room where programs may run; thousands of small files go there."""
    for path in candidates:
        try:
            facts = os.statvfs(path)
        except OSError:
            continue
        room = facts.f_bavail * facts.f_frsize >= NEEDED_TMP_BYTES
        if room and not facts.f_flag & os.ST_NOEXEC and os.access(path, os.W_OK):
            return path
    return None


def debian_architecture(machine: str) -> str:
    """Debian's word for a machine type; container images use the same."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def obtain_base(cache_root: Path, *, log: Log, run: Runner = run_program) -> Base:
    """The base for this system's suite: from the cache, else made (about a minute)."""
    suite = codename(_read(OS_RELEASE))
    recipe = Recipe(suite=suite, architecture=debian_architecture(platform.machine()))
    tar = cache_root / "images" / f"base-{suite}-{recipe.key()}.tar"
    record = tar.with_suffix(".json")
    if not (tar.exists() and record.exists()):
        _make(recipe, tar, cache_root, log=log, run=run)
    facts = json.loads(record.read_text())
    return Base(tar, facts["digest"], facts["python"])


def _make(recipe: Recipe, tar: Path, cache_root: Path, *, log: Log, run: Runner) -> None:
    tools = obtain({"mmdebstrap": "mmdebstrap"}, cache_root / "debs/mmdebstrap", log=log, run=run)
    tar.parent.mkdir(parents=True, exist_ok=True)
    log(f"making the base image ({recipe.suite}, {', '.join(recipe.packages)}); about a minute")
    start = time.monotonic()
    room = scratch_parent([Path(os.environ.get("TMPDIR", TMPFS)), TMPFS, tar.parent])
    with (
        tempfile.TemporaryDirectory(dir=tar.parent, prefix=".base-") as beside,
        tempfile.TemporaryDirectory(dir=room, prefix="rbln-base-") as scratch,
    ):
        # mmdebstrap's unprivileged helpers must be able to pass through.
        Path(scratch).chmod(0o755)
        made = Path(beside) / "base.tar"
        _bootstrap(recipe, made, Path(beside), Path(scratch), tools=tools, run=run)
        facts = {"digest": file_sha256(made), "python": python_of(made)}
        record = Path(beside) / "base.json"
        record.write_text(json.dumps(facts))
        made.rename(tar)
        record.rename(tar.with_suffix(".json"))
    size_mb = tar.stat().st_size / 1e6
    log(f"base image made in {time.monotonic() - start:.0f} s, {size_mb:.0f} MB: {tar}")


def _bootstrap(
    recipe: Recipe, made: Path, work: Path, scratch: Path, *, tools: Tools, run: Runner
) -> None:
    env = tools.environment({**os.environ, "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(recipe.epoch_s)})
    env["TMPDIR"] = str(scratch)
    options = work / "apt-options"
    options.write_text(transport_options(run(["apt-config", "dump"], env).output))
    sources = source_files(_source_texts(APT_DIR), recipe.suite)
    if not sources:
        raise ToolchainError(
            f"no file below {APT_DIR} offers the component main of {recipe.suite}",
            "add the distribution's own package source",
        )
    program = tools.paths["mmdebstrap"]
    done = run(mmdebstrap_argv(program, recipe, made, options=options, sources=sources), env)
    if done.code:
        raise ToolchainError(
            f"mmdebstrap failed with code {done.code}; its last lines:\n{done.tail(60)}\n",
            "check the network and the package sources; it needs root or user namespaces",
        )


def _source_texts(apt_dir: Path) -> dict[Path, str]:
    listed = [apt_dir / "sources.list", *(apt_dir / "sources.list.d").glob("*")]
    return {path: _read(path) for path in listed if path.suffix in {".list", ".sources"}}


def _read(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


def python_of(tar: Path) -> str:
    """The minor version of the Python inside a root filesystem, from its library directory."""
    import tarfile  # noqa: PLC0415 - only a base that was just made is looked into

    with tarfile.open(tar) as archive:
        for member in archive:
            found = re.fullmatch(r"(?:\./)?usr/lib/python(3\.\d+)/os\.py", member.name)
            if found:
                return found.group(1)
    raise ToolchainError(f"{tar} holds no Python", "remove it and build again")
