"""One answer over all recordings of a data set: workers read and merge parts of it, and the parts are merged here."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _kvmscope as native
from .engines import Engine, engine_of
from .store import Store

# Recordings of a piece: a worker holds the tables of so many.
TOGETHER = 64


@dataclass(frozen=True)
class Report:
    """The answer, as `kvmscope fleet report --json` prints it."""

    json: dict[str, Any] = field(repr=False)

    @property
    def section(self) -> dict[str, Any]:
        """The answer to the one question about fleets."""
        section: dict[str, Any] = self.json["sections"][0]
        return section

    @property
    def summary(self) -> str:
        """The answer in a paragraph."""
        return str(self.section["summary"])

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What is wrong, and where."""
        return list(self.section["findings"])

    @property
    def tables(self) -> list[str]:
        """Names of the tables that have rows."""
        return list(self.section["tables"])

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table, each by the names of its columns; none of one without rows."""
        found = self.section["tables"].get(table)
        if found is None:
            return []
        names = [column["name"] for column in found["columns"]]
        return [dict(zip(names, row, strict=True)) for row in found["rows"]]

    def __str__(self) -> str:
        return self.summary


def report(
    dataset: str | os.PathLike[str],
    *,
    engine: Engine | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Answers over all recordings of a data set: the same answer on every engine, and in the terminal."""
    store = Store(dataset, storage_options)
    manifest = native.fleet_manifest_name()
    try:
        store.read([manifest])
    except FileNotFoundError:
        raise ValueError(f"{store.url} is no data set of kvmscope: it has no {manifest}") from None
    ids = native.fleet_recordings(sorted(store.names(native.fleet_recordings_folder())))
    failures = sorted(store.names(native.fleet_failures_folder()))
    if not ids:
        raise ValueError(f"{store.url} has no recordings; kvmscope.fleet.analyse adds some")
    settings = {"dataset": store.url, "storage_options": store.options}
    with engine_of(engine) as running:
        size = max(1, min(TOGETHER, -(-len(ids) // running.workers)))
        pieces = [json.dumps(settings | {"recordings": ids[at : at + size]}).encode() for at in range(0, len(ids), size)]
        merged = native.fleet_partial([], list(store.read(failures).items()))
        for part in running.run(work, pieces):
            merged = native.fleet_merged([merged, part])
    return Report(json.loads(native.fleet_answer(merged)))


def work(piece: bytes) -> bytes:
    """What a worker does: reads the tables of some recordings and merges them."""
    settings = json.loads(piece)
    store = Store(settings["dataset"], settings["storage_options"])
    ids = [tuple(one) for one in settings["recordings"]]
    paths = {one: native.fleet_stored_paths(*one) for one in ids}
    content = store.read([path for own in paths.values() for path in own])
    return bytes(native.fleet_partial([(*one, [(path, content[path]) for path in own]) for one, own in paths.items()], []))
