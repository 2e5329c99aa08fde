"""The engine's environment for one cluster: its tools on PATH, its state beside the cluster.

Everything is in the cluster's own folder, so a user's Pulumi login, plugins and stacks are never
touched, and the state of a stack cannot outlive the cluster that it describes.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain import obtain, pins

if TYPE_CHECKING:
    from toolchain.cluster.spec import Layout
    from toolchain.obtain import Tools
    from toolchain.progress import Reporter

PLUGIN = f"resource-kubernetes-v{pins.PROVIDER}"


def prepare(layout: Layout, say: Reporter) -> dict[str, str]:
    """Have the engine and the folders of its state; give the variables that use them."""
    tools = obtain.obtain((*pins.ENGINE, *pins.CONTROL_PLANE), say)
    home, state = layout.pulumi / "home", layout.pulumi / "state"
    state.mkdir(parents=True, exist_ok=True)
    # As a plugin and not on PATH: the engine warns about every provider that it finds there.
    plugin = home / "plugins" / PLUGIN
    plugin.mkdir(parents=True, exist_ok=True)
    program = plugin / "pulumi-resource-kubernetes"
    program.unlink(missing_ok=True)
    program.symlink_to(tools.program("pulumi-resource-kubernetes"))
    return variables(layout, tools, os.environ.get("PATH", os.defpath))


def variables(layout: Layout, tools: Tools, path: str) -> dict[str, str]:
    """Form the variables; the programs of this project's own environment come first on PATH."""
    folders = [
        Path(sys.executable).parent,
        tools.program("pulumi").parent,
        tools.program("kubectl").parent,
    ]
    return {
        "KUBECONFIG": str(layout.kubeconfig),
        "PATH": os.pathsep.join([*dict.fromkeys(map(str, folders)), path]),
        "PULUMI_BACKEND_URL": f"file://{layout.pulumi / 'state'}",
        # Guards nothing: the stacks of an embedded cluster hold no secret and end with it.
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_HOME": str(layout.pulumi / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def exports(values: dict[str, str]) -> str:
    """Form the lines that a shell evaluates."""
    return "\n".join(f"export {key}={shlex.quote(value)}" for key, value in values.items())
