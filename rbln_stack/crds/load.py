"""Reads the committed definitions, for components and for the command line."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from rbln_stack.profiles import VendorProfile


def crd_manifests(profile: VendorProfile) -> tuple[dict[str, Any], ...]:
    """The definitions in the vendor's group, by name; a vendor without any gets none."""
    files = resources.files("rbln_stack.crds")
    texts = [file.read_text(encoding="utf-8") for file in files.iterdir() if _is_definition(file)]
    manifests = sorted(
        (yaml.safe_load(text) for text in texts), key=lambda found: str(found["metadata"]["name"])
    )
    return tuple(found for found in manifests if found["spec"]["group"] == profile.label_domain)


def _is_definition(file: Traversable) -> bool:
    return file.name.endswith(".yaml")
