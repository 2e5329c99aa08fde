"""Everything that can be wrong before a resource is made, and how it is said.

Pure code raises these or returns `Notice`s; the program and the command line print them. Texts are
formed here alone, so that a user sees the same words wherever a problem shows up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Level = Literal["info", "warning"]
Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong: what it is about, what is wrong with it, what helps.

    Programs tell problems apart by `code`; `node` is set when the subject is a node.
    """

    subject: str
    what: str
    remedy: str
    severity: Severity = "error"
    code: str = ""
    node: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.what}. {self.remedy}."


@dataclass(frozen=True, slots=True, order=True)
class Notice:
    """Something a user should read although the run goes on."""

    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.text}"


class StackError(Exception):
    """Base of all expected failures; holds every problem that was found, not just the first."""

    title: ClassVar[str] = "the stack cannot be planned"
    code: ClassVar[str] = "stack"

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [f"{self.title}:", *(f"  - {problem}" for problem in self.problems)]
        super().__init__("\n".join(lines))


class ConfigError(StackError):
    """Stack config that does not say what it must."""

    title = "the stack config is not valid"
    code = "config"


class DiscoveryError(StackError):
    """The nodes could not be read, or there is nothing to find among them."""

    title = "the accelerator nodes cannot be found"
    code = "discovery"


class PlanError(StackError):
    """Config and nodes do not fit together."""

    title = "config and nodes do not fit together"
    code = "plan"
