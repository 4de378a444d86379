"""A place in a store of fsspec: a directory, a bucket, whatever has a URL.

A file appears whole or not at all: stores of objects do that by themselves, and in a directory of this machine it is renamed into its place.
"""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

import fsspec


class Store:
    """A root that paths are relative to. It is sent to workers by its URL and options, and connects there again."""

    def __init__(self, url: str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> None:
        self.url = os.fspath(url)
        self.options = dict(options or {})
        self.fs, root = fsspec.core.url_to_fs(self.url, **self.options)
        self.root = root.rstrip("/")
        self.is_local = "file" in (self.fs.protocol if isinstance(self.fs.protocol, tuple) else (self.fs.protocol,))

    def __reduce__(self) -> tuple[type[Store], tuple[str, dict[str, Any]]]:
        return Store, (self.url, self.options)

    def path(self, name: str) -> str:
        """Where a file lies, as the store calls it."""
        return posixpath.join(self.root, name) if name else self.root

    def names(self, folder: str) -> set[str]:
        """Every file below a folder, relative to the root; none if nothing is there."""
        self.fs.invalidate_cache()
        try:
            found = self.fs.find(self.path(folder))
        except FileNotFoundError:
            return set()
        return {name[len(self.root) + 1 :] for name in found}

    def read(self, names: Iterable[str]) -> dict[str, bytes]:
        """The content of files, read together."""
        wanted = {self.path(name): name for name in names}
        if not wanted:
            return {}
        content = self.fs.cat(list(wanted))
        if isinstance(content, bytes):
            return {next(iter(wanted.values())): content}
        return {wanted[self.fs._strip_protocol(path)]: data for path, data in content.items()}

    def put(self, files: Mapping[str, bytes]) -> None:
        """Writes files; none of them is there in part."""
        if not self.is_local:
            self.fs.pipe({self.path(name): content for name, content in files.items()})
            return
        for name, content in files.items():
            place = self.path(name)
            folder, file = posixpath.split(place)
            os.makedirs(folder, exist_ok=True)
            partial = posixpath.join(folder, f".{file}.{secrets.token_hex(8)}.new")
            try:
                with open(partial, "wb") as out:
                    out.write(content)
                os.replace(partial, place)
            except BaseException:
                if os.path.exists(partial):
                    os.unlink(partial)
                raise

    def remove(self, name: str) -> None:
        """Removes a file if it is there."""
        try:
            self.fs.rm_file(self.path(name))
        except FileNotFoundError:
            pass
