"""Reads a stack's config without the engine: `Pulumi.<stack>.yaml`, or bare values in a file.

Called by the command line. The result has the form in which the engine hands config to the program,
so that `plan`, `render` and `pulumi preview` check and use the very same values.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from rbln_stack.config.load import stack_values
from rbln_stack.errors import ConfigError, Notice, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROJECT: Final = "rbln-stack"
_PROJECT_FILE: Final = "Pulumi.yaml"
_BESIDE_CONFIG: Final = frozenset(
    {"config", "encryptionsalt", "encryptedkey", "secretsprovider", "environment"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackConfig:
    """Config as the engine would give it to the program, and the folder its paths start from."""

    stack: str
    directory: Path
    config_map: Mapping[str, str] = field(hash=False)
    secret_keys: frozenset[str] = frozenset()
    notices: tuple[Notice, ...] = ()

    @property
    def values(self) -> dict[str, Any]:
        """What `config.load` checks."""
        return stack_values(self.config_map, PROJECT)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The encrypted ones among the keys of the values."""
        keys = (key.partition(":") for key in self.secret_keys)
        return tuple(sorted(key for project, _, key in keys if project == PROJECT))

    def with_nodes(self, path: Path) -> StackConfig:
        """The same with a recorded node list in place of whatever config names."""
        discovery = self.values.get("discovery")
        kept = discovery if isinstance(discovery, dict) else {}
        # As the user would write it into the stack file, so that outputs look alike everywhere.
        shown = os.path.relpath(path, self.directory)
        wanted = {**kept, "source": "snapshot", "snapshot": shown}
        return replace(
            self, config_map={**self.config_map, f"{PROJECT}:discovery": json.dumps(wanted)}
        )


def project_directory(start: Path) -> Path | None:
    """The nearest folder, upwards, that holds a project."""
    return next(
        (folder for folder in (start, *start.parents) if (folder / _PROJECT_FILE).is_file()), None
    )


def read_stack(stack: str, start: Path, environ: Mapping[str, str] = os.environ) -> StackConfig:
    """The config of a stack of the project around `start`; an empty name means the only one."""
    directory = project_directory(start)
    if directory is None:
        raise _failure(
            str(start),
            f"there is no {_PROJECT_FILE} here or above",
            "Go to the project's folder, or name a file with --config",
        )
    # The full name of a stack is organisation/project/stack; files are named after the last part.
    name = (stack or environ.get("PULUMI_STACK", "")).rpartition("/")[2] or _only_stack(directory)
    path = directory / f"Pulumi.{name}.yaml"
    if not path.is_file():
        raise _failure(
            f"stack {name}",
            f"there is no file {path.name} in {directory}",
            f"Stacks there: {', '.join(_stacks(directory)) or 'none'}",
        )
    return _of_content(_content(path), name, directory)


def read_file(path: Path, start: Path) -> StackConfig:
    """Config out of a stack file, or out of bare values as in a chart's values file."""
    content = _content(path)
    name = path.name.removeprefix("Pulumi.").removesuffix(path.suffix) or path.name
    if _is_stack_file(content):
        return _of_content(content, name, project_directory(path.parent) or path.parent)
    directory = project_directory(start) or start
    config_map = {f"{PROJECT}:{key}": _text(value) for key, value in content.items()}
    return StackConfig(stack=name, directory=directory, config_map=config_map)


def _of_content(content: Mapping[str, Any], stack: str, directory: Path) -> StackConfig:
    project_file = directory / _PROJECT_FILE
    defaults = _project_defaults(_content(project_file)) if project_file.is_file() else {}
    own = content.get("config") or {}
    if not isinstance(own, dict):
        raise _failure(f"stack {stack}", "config is not a map", "Write keys below config:")
    notices = (
        (Notice("warning", f"stack {stack}", "values of its environment are not read here"),)
        if content.get("environment")
        else ()
    )
    return StackConfig(
        stack=stack,
        directory=directory,
        config_map={**defaults, **{key: _text(value) for key, value in own.items()}},
        secret_keys=frozenset(key for key, value in own.items() if _is_secret(value)),
        notices=notices,
    )


def _project_defaults(project: Mapping[str, Any]) -> dict[str, str]:
    """What the project file gives to every stack: `value`, `default`, or the bare value."""
    found: dict[str, str] = {}
    for key, entry in (project.get("config") or {}).items():
        full = key if ":" in key else f"{project.get('name', PROJECT)}:{key}"
        if not isinstance(entry, dict):
            found[full] = _text(entry)
        elif "value" in entry or "default" in entry:
            found[full] = _text(entry.get("value", entry.get("default")))
    return found


def _is_stack_file(content: Mapping[str, Any]) -> bool:
    """Whether the keys are the engine's; a chart's values have none called config."""
    return bool(content) and content.keys() <= _BESIDE_CONFIG


def _content(path: Path) -> dict[str, Any]:
    remedy = "Give a stack file or a file of values"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        what = "there is no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise _failure(str(path), what, remedy) from error
    except yaml.YAMLError as error:
        raise _failure(str(path), "is not YAML", remedy) from error
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise _failure(str(path), "does not hold a map of keys", remedy)
    return content


def _text(value: object) -> str:
    """The engine's own form of a value: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _is_secret(value: object) -> bool:
    if isinstance(value, dict):
        return set(value) == {"secure"} or any(_is_secret(part) for part in value.values())
    return isinstance(value, list) and any(_is_secret(part) for part in value)


def _only_stack(directory: Path) -> str:
    stacks = _stacks(directory)
    if len(stacks) == 1:
        return stacks[0]
    raise _failure(
        str(directory),
        f"it is not clear which stack is meant: {', '.join(stacks) or 'there is none'}",
        "Name one with --stack, PULUMI_STACK or --config",
    )


def _stacks(directory: Path) -> list[str]:
    return sorted(path.name.split(".", 1)[1][:-5] for path in directory.glob("Pulumi.*.yaml"))


def _failure(subject: str, what: str, remedy: str) -> ConfigError:
    return ConfigError([Problem(subject, what, remedy, code="config")])
