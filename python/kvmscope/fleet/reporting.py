"""One answer over all recordings of a data set: workers read and merge parts of it, and the parts are merged here."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from .. import _kvmscope as native
from .._kvmscope import Report
from .engines import Engine, engine_of
from .store import Store, reaching

# Recordings of a piece: a worker holds the tables of so many.
TOGETHER = 64
# Parts that are merged at a time: so many wait here at most.
MOST_PARTS = 16


def report(
    dataset: str | os.PathLike[str],
    *,
    engine: Engine | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Report:
    """Answers over all recordings of a data set: the same answer on every engine, and in the terminal.

    `engine` is "dask", "spark", one made by `Dask(address)` or `Spark(session)`, or none for this process; `storage_options` go to fsspec.
    """
    store = Store(dataset, storage_options)
    manifest = native.fleet_manifest_name()
    try:
        with reaching(store.url):
            schema = json.loads(store.read([manifest])[manifest])["schema"]
    except native.NoAnswerError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        raise native.UsageError(f"{store.url} is no data set of kvmscope: it has no {manifest}") from None
    if schema != native.fleet_schema():
        raise native.UsageError(
            f"{store.url} is a data set of schema {schema}; this version reads {native.fleet_schema()}"
        )
    ids = native.fleet_recordings(sorted(store.names(native.fleet_recordings_folder())))
    if not ids:
        raise native.NoAnswerError(f"{store.url} has no recordings; kvmscope.fleet.analyse adds some")
    failures = store.read(store.names(native.fleet_failures_folder()))
    parts = [native.fleet_partial([], list(failures.items()))]
    settings = {"dataset": store.url, "storage_options": store.options}
    with engine_of(engine) as running:
        size = max(1, min(TOGETHER, -(-len(ids) // running.workers)))
        pieces = [
            json.dumps(settings | {"recordings": ids[at : at + size]}).encode() for at in range(0, len(ids), size)
        ]
        for part in running.run(work, pieces):
            parts.append(part)
            if len(parts) >= MOST_PARTS:
                parts = [native.fleet_merged(parts)]
    return native.fleet_answer(native.fleet_merged(parts))


def work(piece: bytes) -> bytes:
    """What a worker does: reads the tables of some recordings and merges them."""
    settings = json.loads(piece)
    store = Store(settings["dataset"], settings["storage_options"])
    paths = {
        (host, recording): native.fleet_stored_paths(host, recording) for host, recording in settings["recordings"]
    }
    content = store.read([path for own in paths.values() for path in own])
    recordings = [(*one, [(path, content[path]) for path in own]) for one, own in paths.items()]
    return native.fleet_partial(recordings, [])
