"""What a report has, by name."""

from __future__ import annotations

import difflib
from typing import NoReturn, TypeVar

from ._kvmscope import UsageError

V = TypeVar("V")


class MissingError(UsageError, KeyError):
    """A name that is not there: one of kvmscope's errors, and a `KeyError` as of any dict."""

    def __str__(self) -> str:
        return str(self.args[0])


class Named(dict[str, V]):
    """A dict that says what it has when it is asked for what it has not."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def __missing__(self, name: object) -> NoReturn:
        near = difflib.get_close_matches(str(name), self, n=1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise MissingError(f"there is no {self._kind} {name!r}; there are: {', '.join(self) or 'none'}.{meant}")
