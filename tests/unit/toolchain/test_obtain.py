"""Where tools come from: PATH, a release, a build; and what happens when a source fails."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolchain import cache, gobuild, obtain, pins, release, versions
from toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = b"#!/bin/sh\necho tool 1.2.3\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def published(tmp_path: Path) -> Iterator[pins.Bundle]:
    """A bundle whose release is on a server of this test."""
    folder = tmp_path / "published"
    folder.mkdir()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        entry = tarfile.TarInfo("tool/program")
        entry.size = len(PROGRAM)
        tar.addfile(entry, io.BytesIO(PROGRAM))
    (folder / "tool.tar.gz").write_bytes(buffer.getvalue())
    total = hashlib.sha256(buffer.getvalue()).hexdigest()
    (folder / "sums").write_text(f"{total}  tool.tar.gz\n")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        yield pins.Bundle(
            name="tool",
            version="1.2.3",
            typical_s=1,
            builds=(),
            probes=(pins.Probe(program="program", argv=(), oldest="", below=""),),
            release=pins.Release(
                url=f"{url}/tool.tar.gz",
                checksums=f"{url}/sums",
                members={"tool/program": "bin/program"},
            ),
        )
        server.shutdown()
        thread.join()


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, published: pins.Bundle) -> pins.Bundle:
    monkeypatch.setitem(pins.BY_NAME, "tool", published)
    return published


def got(tmp_path: Path) -> tuple[obtain.Tools, list[str]]:
    said: list[str] = []
    return obtain.obtain(["tool"], said.append, root=tmp_path / "cache", search=False), said


def test_a_release_is_unpacked_and_reused(known: pins.Bundle, tmp_path: Path) -> None:
    tools, said = got(tmp_path)
    assert tools.program("program").read_bytes() == PROGRAM
    assert os.access(tools.program("program"), os.X_OK)
    assert [line.rsplit(" in ", 1)[0] for line in said] == ["tool 1.2.3: downloaded"]
    assert got(tmp_path)[1] == []


@pytest.mark.parametrize("damage", [b"", b"x" * len(PROGRAM)])
def test_a_corrupt_cached_program_is_named_and_made_anew(
    known: pins.Bundle, tmp_path: Path, damage: bytes
) -> None:
    tools, _ = got(tmp_path)
    tools.program("program").write_bytes(damage)
    tools, said = got(tmp_path)
    assert tools.program("program").read_bytes() == PROGRAM
    assert said[0] == (
        "tool 1.2.3: the cached copy is unusable, bin/program is corrupt "
        "(its checksum differs from the recorded one); making it anew"
    )


def test_a_touched_but_equal_program_is_kept(known: pins.Bundle, tmp_path: Path) -> None:
    tools, _ = got(tmp_path)
    os.utime(tools.program("program"))
    assert got(tmp_path)[1] == []


def test_a_release_with_another_checksum_is_refused(known: pins.Bundle, tmp_path: Path) -> None:
    (tmp_path / "published" / "sums").write_text(f"{'0' * 64}  tool.tar.gz\n")
    with pytest.raises(ToolchainError, match="does not have the published checksum 000"):
        got(tmp_path)
    assert list((tmp_path / "cache" / "tools").glob("*tool-*")) == []


def test_an_unreachable_release_leads_to_the_build(
    known: pins.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "published" / "tool.tar.gz").unlink()
    monkeypatch.setattr(gobuild, "find_go", lambda root: gobuild.Go(root / "go", root))
    monkeypatch.setattr(cache, "require_space", lambda *_: None)
    _, said = got(tmp_path)
    assert said[0] == "tool 1.2.3: building from source (takes about 1.0 s on two cores)"
    assert said[1].startswith("tool 1.2.3: built in ")


def test_a_fitting_program_on_path_is_used_as_it_is(
    known: pins.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "program"
    program.parent.mkdir()
    program.write_bytes(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    tools = obtain.obtain(["tool"], lambda _: None, root=tmp_path / "cache")
    assert (tools.program("program"), tools.origins) == (program, {"tool": "PATH"})
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("oldest", "below", "fits"), [("1.2.0", "1.3.0", True), ("1.3.0", "2.0.0", False)]
)
def test_a_program_on_path_must_have_a_fitting_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, oldest: str, below: str, *, fits: bool
) -> None:
    program = tmp_path / "program"
    program.write_bytes(PROGRAM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    probe = pins.Probe(program="program", argv=("--version",), oldest=oldest, below=below)
    assert (versions.fitting_on_path(probe) == program) is fits


def test_a_full_disk_is_said_before_a_build(
    tmp_path: Path,
) -> None:
    with pytest.raises(ToolchainError, match="free some space, or set XDG_CACHE_HOME"):
        cache.require_space(tmp_path, 1 << 60)


def test_a_disk_that_fills_up_leaves_no_half_made_entry(tmp_path: Path) -> None:
    target = tmp_path / "tools" / "entry"

    def fill() -> None:
        with cache.explaining(tmp_path), cache.new_entry(target) as work:
            (work / "bin" / "half").write_bytes(b"half")
            raise OSError(errno.ENOSPC, "no space")

    with pytest.raises(ToolchainError, match=r"the disk of the cache .* is full"):
        fill()
    assert list(target.parent.iterdir()) == []


def test_a_failed_build_names_the_tool_its_log_and_a_remedy(tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho cannot find module >&2\nexit 1\n")
    go.chmod(0o755)
    bundle = pins.BY_NAME["kwok"]
    log = tmp_path / "logs" / "kwok.log"
    with pytest.raises(ToolchainError) as caught:
        gobuild.build(bundle, tmp_path / "entry", gobuild.Go(go, tmp_path / "root"), log)
    assert str(caught.value) == (
        f"the build of kwok 0.7.0 failed, its log is {log}: read the end of the log; if modules "
        "could not be downloaded, run again (it resumes), or put kwok 0.7.0 on PATH"
    )
    assert "cannot find module" in log.read_text()


def test_a_changed_pin_changes_the_key() -> None:
    bundle = pins.BY_NAME["pulumi"]
    files = gobuild.sources(bundle)
    other = pins.Bundle(name="pulumi", version="9", typical_s=1, builds=bundle.builds)
    assert {path.name for path in files} == {"go.mod", "go.sum"}
    assert cache.key_of(bundle, files, "x86_64") == cache.key_of(bundle, files[::-1], "x86_64")
    assert cache.key_of(bundle, files, "x86_64") != cache.key_of(bundle, files, "aarch64")
    assert cache.key_of(bundle, files, "x86_64") != cache.key_of(other, files, "x86_64")


@given(st.tuples(*[st.integers(0, 999)] * 3), st.text("abc -", max_size=8))
def test_a_version_is_found_in_any_text(numbers: tuple[int, int, int], noise: str) -> None:
    text = f"{noise}v{'.'.join(map(str, numbers))}"
    assert versions.parse(text) == numbers
    assert versions.fits(text, "0.0.0", "1000.0.0")


def test_published_sums_are_read_in_each_form() -> None:
    assert release.published_sum("aa  one\nBB *dir/two\n", "two") == "bb"
    assert release.published_sum("aa\n", "whatever") == "aa"
    assert release.published_sum("aa  one\n", "two") is None
