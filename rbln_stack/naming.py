"""Every Kubernetes name and image reference the stack forms.

Pure and deterministic: the same facts give the same name in any order and on any machine.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_LIMIT: Final = 63
TAG_LIMIT: Final = 128
_HASH_LENGTH: Final = 8
_ARCH_SUFFIX: Final = re.compile(r"[-._]?(x86_64|aarch64)([-._+]64k)?(?=$|[-._+])")

PoolKey = tuple[str, str, str, str]


def kernel_part(kernel: str) -> str:
    """A kernel release without what names cannot hold: the architecture, capitals, `_` and `+`."""
    return _normalised(_ARCH_SUFFIX.sub("", kernel.lower()))


def pool_names(keys: Iterable[PoolKey], prefix: str) -> dict[PoolKey, str]:
    """A distinct name per pool, such that `<prefix>-<name>` is a valid object name.

    A hash is added only to names that are cut or that two pools would share. Both of these get
    one, so that no name ever changes its meaning with the order of nodes.
    """
    limit = NAME_LIMIT - len(prefix) - 1
    names = {key: _plain(key) for key in keys}
    hashed = {key for key, name in names.items() if len(name) > limit or not name}
    while True:
        final = {key: _hashed(key, limit) if key in hashed else names[key] for key in names}
        counts = Counter(final.values())
        clashing = {key for key, name in final.items() if counts[name] > 1} - hashed
        if not clashing:
            return final
        hashed |= clashing


def object_name(prefix: str, pool: str) -> str:
    """The name of a pool's DaemonSet."""
    return f"{prefix}-{pool}"


def image_reference(registry: str, repository: str, tag: str) -> str:
    """One reference out of three parts; a digest in place of the tag is joined by `@`."""
    joint = "@" if tag.startswith("sha256:") else ":"
    return f"{registry.rstrip('/')}/{repository.lstrip('/')}{joint}{tag}"


def precompiled_tag(tag: str, kernel: str, os_id: str, os_version: str) -> str:
    """The tag of an image built for one kernel; the kernel stays as the node's label has it."""
    return f"{tag}-{kernel}-{os_id}{os_version}"


def _plain(key: PoolKey) -> str:
    os_id, os_version, kernel, _ = key
    return _normalised(f"{os_id}{os_version}-{kernel_part(kernel)}".lower())


def _hashed(key: PoolKey, limit: int) -> str:
    digest = hashlib.sha256("\n".join(key).encode()).hexdigest()[:_HASH_LENGTH]
    stem = _plain(key)[: limit - _HASH_LENGTH - 1].rstrip("-.")
    return f"{stem}-{digest}" if stem else digest


def _normalised(text: str) -> str:
    """Reduce to parts that start and end with a letter or digit, as DNS names must."""
    text = re.sub(r"[^a-z0-9.-]", "-", text.replace("_", "."))
    text = re.sub(r"[-.]*\.[-.]*", ".", text)
    return text.strip("-.")
