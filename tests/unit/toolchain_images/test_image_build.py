"""What the agents' image is made of, and when it is made anew."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolchain.debian import Finished
from toolchain.errors import ToolchainError
from toolchain.images import __main__ as command
from toolchain.images.build import Buildah, build_arguments, remember, remembered
from toolchain.images.context import (
    PROGRAM,
    SINGLE_FILES,
    context_files,
    input_key,
    project_version,
    stage,
)
from toolchain.images.oci import BuiltImage
from toolchain.images.wheels import download_argv, obtain_wheels, platform_tags

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROJECT = Path(__file__).resolve().parents[3]


def quiet(line: str) -> None:
    del line


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in [
        *SINGLE_FILES,
        "agents/extra.py",
        "agents/__pycache__/main.pyc",
        "rbln_stack/plan.py",
    ]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    return root


def key(project: Path, base: str = "sha256:b", version: str = "1") -> str:
    return input_key(context_files(project), base_digest=base, version=version)


def test_incomplete_checkout_is_named(project: Path) -> None:
    (project / "agents/main.py").unlink()
    with pytest.raises(ToolchainError, match=r"lacks agents/main\.py"):
        context_files(project)


def test_context_holds_sources_only(project: Path) -> None:
    assert sorted(context_files(project)) == sorted([*SINGLE_FILES, "agents/extra.py"])


def test_key_follows_every_input(project: Path) -> None:
    first = key(project)
    assert key(project) == first
    assert key(project, base="sha256:c") != first
    assert key(project, version="2") != first
    (project / "x.py").write_text("not part of the image")
    assert key(project) == first
    shutil.move(project / "agents/extra.py", project / "agents/other.py")
    assert key(project) != first


def test_staged_files_have_plain_permissions(project: Path, tmp_path: Path) -> None:
    (project / "agents/main.py").chmod(0o600)
    stage(context_files(project), tmp_path / "context")
    assert (tmp_path / "context/agents/main.py").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "context" / PROGRAM).stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "context/agents").stat().st_mode & 0o777 == 0o755


def test_version_comes_from_the_metadata(project: Path) -> None:
    assert project_version(project) == "1.2.3"


def test_earlier_image_counts_only_with_same_input_and_size(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    assert remembered(archive, "k") is None
    archive.write_bytes(b"12345")
    image = BuiltImage(archive, "n:1", "sha256:d", 5)
    remember(image, "k")
    assert remembered(archive, "k") == image
    assert remembered(archive, "other") is None
    archive.write_bytes(b"123")
    assert remembered(archive, "k") is None


def test_buildah_gets_private_storage_mounts_and_libraries() -> None:
    work = Path("/w")
    buildah = Buildah(
        program=Path("/t/buildah"), work=work, env={}, driver="vfs", loader_cache=work / "cache"
    )
    argv = buildah.argv("info")
    assert argv[:2] == ["unshare", "--mount"]
    assert argv[argv.index("/w/cache") + 1] == "/t/buildah"
    assert argv[argv.index("--root") + 1] == "/w/storage"
    assert argv[argv.index("--storage-driver") + 1] == "vfs"
    assert argv[-1] == "info"
    plain = Buildah(program=Path("/b"), work=work, env={}, driver="vfs", loader_cache=None)
    assert "sh" not in plain.argv("info")


def test_build_needs_no_network(tmp_path: Path) -> None:
    (tmp_path / "pip-26.3-py3-none-any.whl").touch()
    arguments = build_arguments(Path("/w/context"), name="n:1", version="1", wheels=tmp_path)
    assert "--pull-never" in arguments
    assert "--build-arg=PIP_NO_INDEX=1" in arguments
    assert "--build-arg=PIP=python3 /wheels/pip-26.3-py3-none-any.whl/pip" in arguments
    assert arguments[arguments.index("--timestamp") + 1] == "0"


def test_platforms_go_from_new_to_old() -> None:
    tags = platform_tags("x86_64", 7)
    assert tags[:3] == ["manylinux_2_7_x86_64", "manylinux_2_6_x86_64", "manylinux_2_5_x86_64"]
    assert "manylinux2014_x86_64" in tags


def test_wheels_are_chosen_for_the_bases_python(tmp_path: Path) -> None:
    argv = download_argv("3.13", ["p"], [tmp_path / "r.txt"], tmp_path / "w")
    assert argv[argv.index("--python-version") + 1] == "3.13"
    assert {"--require-hashes", "--abi=cp313", "--abi=abi3", "--abi=none"} <= set(argv)


def test_wheels_are_fetched_once_and_never_half(tmp_path: Path) -> None:
    requirements = tmp_path / "r.txt"
    requirements.write_text("a==1\n")
    calls: list[Sequence[str]] = []

    def run(argv: Sequence[str], env: Mapping[str, str]) -> Finished:
        del env
        calls.append(argv)
        return Finished(len(calls) % 2, "no matching distribution")

    with pytest.raises(ToolchainError, match=r"(?s)r\.txt for Python 3\.11.*no matching"):
        obtain_wheels(tmp_path, "3.11", [requirements], log=quiet, run=run)
    assert list((tmp_path / "images").iterdir()) == []
    place = obtain_wheels(tmp_path, "3.11", [requirements], log=quiet, run=run)
    assert obtain_wheels(tmp_path, "3.11", [requirements], log=quiet, run=run) == place
    assert len(calls) == 2


def test_container_file_keeps_its_promises() -> None:
    text = (PROJECT / "images/agent/Containerfile").read_text()
    assert "ARG BASE=python:3" in text
    assert text.count("FROM ${BASE}") == 2
    assert "--require-hashes" in text
    assert "USER 65532:65532" in text
    assert 'ENTRYPOINT ["rbln-agent"]' in text


def test_result_as_json_and_text() -> None:
    image = BuiltImage(Path("/o/a.tar"), "n:1", "sha256:d", 2_500_000)
    assert json.loads(command.summary(image, 1.26, "json")) == {
        "archive": "/o/a.tar",
        "name": "n:1",
        "digest": "sha256:d",
        "sizeBytes": 2500000,
        "seconds": 1.3,
    }
    assert "size     2.5 MB" in command.summary(image, 1, "text")


def test_failure_is_one_message_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> BuiltImage:
        raise ToolchainError("no root", "run as root")

    monkeypatch.setattr(command, "build_agent_image", fail)
    assert command.main(["agent", "--cache", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "error: no root: run as root\n"


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    assert "python -m toolchain.images agent --out build/images" in capsys.readouterr().out
