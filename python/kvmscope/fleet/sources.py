"""Recordings in any store: which there are, whether they have changed, and a copy on this machine for as long as they are read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import fsspec

from .._kvmscope import NoAnswerError
from .store import reaching


@dataclass(frozen=True)
class Recordings:
    """The recordings that were named, and how their stores are reached."""

    urls: tuple[str, ...]
    # Patterns that nothing matches.
    unmatched: tuple[str, ...]
    options: dict[str, Any]

    @staticmethod
    def of(
        sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], options: Mapping[str, Any] | None
    ) -> Recordings:
        """Each of `sources`; one with `*`, `?` or `[` stands for what it matches, in the order of names.

        Raises `NoAnswerError` where nothing is named, and where no pattern matches anything: a typo must not look like a night without recordings.
        """
        options = dict(options or {})
        named = [sources] if isinstance(sources, str | os.PathLike) else sources
        urls: list[str] = []
        unmatched: list[str] = []
        for source in (os.fspath(place) for place in named):
            if any(sign in source for sign in "*?["):
                with reaching(source):
                    fs, pattern = fsspec.core.url_to_fs(source, **options)
                    is_url = "://" in source
                    matched = sorted(fs.unstrip_protocol(path) if is_url else path for path in fs.glob(pattern))
                urls.extend(matched)
                if not matched:
                    unmatched.append(source)
            else:
                urls.append(source)
        if not urls:
            asked = f"nothing matches {', '.join(unmatched)}" if unmatched else "no recording is named"
            raise NoAnswerError(f"{asked}; name recordings, or a pattern such as nightly/*")
        return Recordings(tuple(dict.fromkeys(urls)), tuple(unmatched), options)


def key(url: str, options: Mapping[str, Any]) -> str:
    """Names a recording by its place and by size and time of all its files: the same as long as nothing was written there."""
    fs, root = fsspec.core.url_to_fs(url, **options)
    fs.invalidate_cache()
    digest = hashlib.sha256(url.encode())
    for path, about in sorted(fs.find(root, detail=True).items()):
        stamp = about.get("ETag") or about.get("mtime") or about.get("LastModified") or ""
        digest.update(f"\0{path}\0{about.get('size')}\0{stamp}".encode())
    return digest.hexdigest()[:32]


@contextmanager
def fetched(url: str, options: Mapping[str, Any]) -> Iterator[str]:
    """The recording as a path of this machine; a copy of one from elsewhere is removed afterwards."""
    fs, root = fsspec.core.url_to_fs(url, **options)
    if "file" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)):
        yield root
        return
    with tempfile.TemporaryDirectory(prefix="kvmscope-fetched-") as place:
        local = os.path.join(place, root.rstrip("/").rsplit("/", 1)[-1])
        if fs.isdir(root):
            fs.get(root.rstrip("/") + "/", local + "/", recursive=True)
        else:
            fs.get_file(root, local)
        yield local
