"""A machine without Go: the package that ships it builds our programs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from toolchain import gobuild, pins

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine


def test_without_go_the_packaged_one_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    go = gobuild.find_go(tmp_path / "go")
    assert go.program.is_relative_to(tmp_path)
    bundle = pins.Bundle(
        name="pause",
        version="1",
        typical_s=1,
        builds=(pins.GoBuild(module="kube", packages=("./pause",)),),
    )
    (tmp_path / "entry" / "bin").mkdir(parents=True)
    gobuild.build(bundle, tmp_path / "entry", go, tmp_path / "log")
    with subprocess.Popen([tmp_path / "entry" / "bin" / "pause"]) as pause:
        pause.terminate()
        assert pause.wait(10) in {0, -15}
