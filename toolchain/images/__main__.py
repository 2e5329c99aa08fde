"""Command line of the image builder: the only place here that prints results."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain import paths
from toolchain.errors import ToolchainError
from toolchain.images.build import build_agent_image
from toolchain.progress import to_stderr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolchain.images.oci import BuiltImage

EXAMPLE = """\
example:
  python -m toolchain.images agent --out build/images
  ctr -n k8s.io images import build/images/rbln-agent-0.1.0.tar

The first run makes a base from this system's package sources (about a minute, needs root); later
runs take seconds, and none when nothing changed. No system package is installed or changed.
"""


def parser() -> argparse.ArgumentParser:
    """The options."""
    result = argparse.ArgumentParser(
        prog="python -m toolchain.images",
        description="Build container images without a registry and without a container engine.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("image", choices=["agent"], help="which image: `agent` is that of agents/")
    result.add_argument(
        "--out", type=Path, metavar="DIR", help="where the archive goes (default: the cache)"
    )
    result.add_argument(
        "--cache", type=Path, metavar="DIR", help="base, tools and wheels (default: %(default)s)"
    )
    result.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="form of the result"
    )
    result.set_defaults(cache=paths.cache_root())
    return result


def summary(image: BuiltImage, seconds: float, form: str) -> str:
    """What is printed at the end."""
    if form == "json":
        facts = {
            "archive": str(image.archive),
            "name": image.name,
            "digest": image.digest,
            "sizeBytes": image.size_bytes,
            "seconds": round(seconds, 1),
        }
        return json.dumps(facts)
    size_mb = image.size_bytes / 1e6
    return (
        f"image    {image.name}\narchive  {image.archive}\ndigest   {image.digest}\n"
        f"size     {size_mb:.1f} MB\ntime     {seconds:.1f} s"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build; 0 done, 1 failed for a reason that is printed."""
    options = parser().parse_args(arguments)
    out = options.out or options.cache / "images"
    start = time.monotonic()
    try:
        image = build_agent_image(
            paths.PROJECT, out.resolve(), cache_root=options.cache.resolve(), log=to_stderr
        )
    except ToolchainError as error:
        to_stderr(f"error: {error}")
        return 1
    sys.stdout.write(summary(image, time.monotonic() - start, options.output) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
