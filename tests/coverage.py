"""Write docs/coverage.md: requirement id -> the tests and code that cite it.

Example: python tests/coverage.py           (writes)
         python tests/coverage.py --check   (fails when the file is out of date)
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "coverage.md"
# S0-14, DC-22, X-05; ranges such as S0-02 … S0-06 are written out by hand where they are meant.
ID = re.compile(r"\b(S[0-4]-\d{2,3}|DC-\d{2}|X-\d{2})\b")
HEAD = """# Coverage of the requirements

Written by `make coverage` from the ids that tests and code cite; `make check` fails when it is out
of date. An id that is not here is cited by nothing yet.

| requirement | tests | code |
| --- | --- | --- |
"""


def cited() -> dict[str, set[str]]:
    """Find every file that cites an id."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.sh"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    found: dict[str, set[str]] = defaultdict(set)
    for name in listed:
        path = ROOT / name
        if path.exists() and path != Path(__file__):
            for identity in ID.findall(path.read_text(encoding="utf-8")):
                found[identity].add(name)
    return found


def order(identity: str) -> tuple[str, int]:
    """Sort ids by their group, then by number."""
    group, number = identity.rsplit("-", 1)
    return group, int(number)


def page(found: dict[str, set[str]]) -> str:
    """Form the page."""
    rows = []
    for identity in sorted(found, key=order):
        tests = sorted(name for name in found[identity] if name.startswith("tests/"))
        code = sorted(found[identity] - set(tests))
        rows.append(f"| {identity} | {', '.join(tests)} | {', '.join(code)} |\n")
    return HEAD + "".join(rows)


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description="Requirement ids and what covers them.")
    parser.add_argument("--check", action="store_true", help="fail when the page is out of date")
    wanted = page(cited())
    if not parser.parse_args().check:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    sys.stderr.write("docs/coverage.md is out of date: run `make coverage` and commit it\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
