"""The one error of this package: what is wrong, and what to do."""


class ToolchainError(Exception):
    """A failure that its reader can mend; printed as one line, without a trace."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}: {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy
