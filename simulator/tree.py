"""A set of files as data, and the way from one set to another.

The simulated kernel describes every file of a state; the difference of two states is what has
to be done. Only `apply` touches a file system.
"""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file with one value, as sysfs has them; the newline is added."""

    value: str


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True, slots=True)
class Fifo:
    """A named pipe: the only file that lets a program act on what is written to it."""


@dataclass(frozen=True, slots=True)
class Device:
    """A character device."""


Entry = Directory | Text | Link | Fifo | Device
Tree = Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class Remove:
    """Take one entry away, with everything below."""

    path: str


@dataclass(frozen=True, slots=True)
class Put:
    """Make an entry or replace it."""

    path: str
    entry: Entry


Action = Remove | Put
NodeMaker = Callable[[Path], None]


def difference(before: Tree, after: Tree) -> tuple[Action, ...]:
    """Return what turns one tree into the other: children leave first and come last."""
    gone = sorted((path for path in before if path not in after), reverse=True)
    changed = sorted(path for path in after if before.get(path) != after[path])
    return (*(Remove(path) for path in gone), *(Put(path, after[path]) for path in changed))


def make_null_device(path: Path) -> None:
    """Make a device node that every container may open.

    There is no kernel driver behind a simulated NPU, and a container's device rules would refuse
    an unknown number. 1:3 is /dev/null, which every runtime allows and which opens anywhere.
    """
    path.unlink(missing_ok=True)
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    path.chmod(0o666)  # mknod obeys the umask


def apply(root: Path, actions: Iterable[Action], make_device: NodeMaker = make_null_device) -> None:
    """Carry out actions below `root`, in their order."""
    for action in actions:
        path = root / action.path
        if isinstance(action, Remove):
            _remove(path)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        _put(path, action.entry, make_device)


def _put(path: Path, entry: Entry, make_device: NodeMaker) -> None:
    match entry:
        case Directory():
            path.mkdir(exist_ok=True)
        case Text(value):
            # By rename, so that a reader never finds an attribute without its value.
            draft = path.with_name(f".{path.name}.new")
            draft.write_text(f"{value}\n", encoding="utf-8")
            draft.replace(path)
        case Link(target):
            path.unlink(missing_ok=True)
            path.symlink_to(target)
        case Fifo():
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        case Device():
            make_device(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
