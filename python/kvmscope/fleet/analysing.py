"""Many recordings become one data set: each is analysed by a worker, which writes its tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import _kvmscope as native
from .engines import Engine, engine_of
from .sources import Recordings, fetched, key
from .store import Store, reaching

# Below the root, and begun so that readers of Parquet leave it alone: which recording lay at a place when it was added.
SOURCES = "_sources"


@dataclass(frozen=True)
class Outcome:
    """What became of one recording: `added`, `already there`, or `failed` with the error."""

    source: str
    status: str
    host: str | None = None
    recording: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Analysed:
    """What became of all recordings, in the order in which they were named."""

    dataset: str
    outcomes: list[Outcome] = field(repr=False)

    def of(self, status: str) -> list[Outcome]:
        """Those that ended so."""
        return [outcome for outcome in self.outcomes if outcome.status == status]

    @property
    def added(self) -> list[Outcome]:
        """Recordings that were analysed now."""
        return self.of("added")

    @property
    def there(self) -> list[Outcome]:
        """Recordings that were there before."""
        return self.of("already there")

    @property
    def failed(self) -> list[Outcome]:
        """Recordings that are rows of fleet.failures, and patterns that nothing matches, which are no row."""
        return self.of("failed")

    def __str__(self) -> str:
        return f"{self.dataset}: {len(self.added)} added, {len(self.there)} already there, {len(self.failed)} failed"


def analyse(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset: str | os.PathLike[str],
    *,
    engine: Engine | str | None = None,
    budget: str | os.PathLike[str] | None = None,
    force: bool = False,
    source_options: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Analysed:
    """Adds recordings to a data set.

    `sources` are places of recordings in any store (directories, bare traces, packed ones), or patterns with `*`; `dataset` is a directory or a URL.
    `engine` is "dask", "spark", one made by `Dask(address)` or `Spark(session)`, or none for this process. `budget` is the name of a built-in budget,
    or a file. A recording that is there is left as it is, unless `force`; one that cannot be analysed is reported and becomes a row of fleet.failures.
    `source_options` and `storage_options` go to fsspec. A pattern that nothing matches is an outcome that failed; where there is no recording at all,
    or no store, `NoAnswerError` is raised and no data set is made.
    """
    store = Store(dataset, storage_options)
    recordings = Recordings.of(sources, source_options)
    with reaching(store.url):
        _begin(store)
        known = {name.rsplit("/", 1)[-1] for name in store.names(SOURCES)}
        failures = store.names(native.fleet_failures_folder())
        rows = store.names(native.fleet_recordings_folder())
    settings = {
        "dataset": store.url,
        "storage_options": store.options,
        "source_options": recordings.options,
        "budget": _budget(budget),
        "force": force,
    }
    outcomes: dict[str, Outcome] = {}
    todo: list[str] = []
    named: dict[str, str] = {}
    # Where nothing was added yet, nothing can be known, and looking at every place here would keep the workers waiting.
    if known and not force:
        for url in recordings.urls:
            try:
                name = f"{key(url, recordings.options)}.json"
            except OSError:
                # The worker says why.
                continue
            if name in known:
                named[f"{SOURCES}/{name}"] = url
        for name, content in store.read(named).items():
            about = json.loads(content)
            if native.fleet_recording_path(about["host"], about["recording"]) in rows:
                url = named[name]
                outcomes[url] = Outcome(url, "already there", about["host"], about["recording"])
    todo = [url for url in recordings.urls if url not in outcomes]
    if todo:
        with engine_of(engine) as running:
            settings["alone"] = running.shares_cpus
            size = max(1, min(8, len(todo) // (4 * running.workers)))
            pieces = [
                json.dumps(
                    settings | {"sources": [(url, native.fleet_failure_path(url) in failures) for url in some]}
                ).encode()
                for some in _chunks(todo, size)
            ]
            for result in running.run(work, pieces):
                for found in json.loads(result):
                    outcomes[found["source"]] = Outcome(**found)
    nothing = [Outcome(pattern, "failed", error="nothing matches this pattern") for pattern in recordings.unmatched]
    return Analysed(store.url, [outcomes[url] for url in recordings.urls] + nothing)


def _budget(budget: str | os.PathLike[str] | None) -> str | None:
    """The name of a built-in budget, or the text of a file: workers elsewhere have no such file."""
    if budget is None or not os.path.isfile(budget):
        return None if budget is None else os.fspath(budget)
    with open(budget, encoding="utf-8") as file:
        return file.read() + "\n"


def _begin(store: Store) -> None:
    """Makes an empty place a data set, and refuses another one."""
    manifest = native.fleet_manifest_name()
    try:
        schema = json.loads(store.read([manifest])[manifest])["schema"]
    except FileNotFoundError:
        if store.names(""):
            raise native.UsageError(
                f"{store.url} is not empty, and no data set of kvmscope: it has no {manifest}"
            ) from None
        store.put({manifest: native.fleet_manifest().encode()})
        return
    if schema != native.fleet_schema():
        raise native.UsageError(
            f"{store.url} is a data set of schema {schema}; this version writes {native.fleet_schema()}"
        )


def _chunks(items: list[str], size: int) -> Iterator[list[str]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def work(piece: bytes) -> bytes:
    """What a worker does: analyses some recordings one after the other and writes their tables."""
    settings = json.loads(piece)
    store = Store(settings["dataset"], settings["storage_options"])
    outcomes = [_one(store, settings, source, failed_before) for source, failed_before in settings["sources"]]
    return json.dumps(outcomes).encode()


def _one(store: Store, settings: dict[str, Any], source: str, failed_before: bool) -> dict[str, Any]:
    outcome: dict[str, Any] = {"source": source}
    try:
        index = f"{SOURCES}/{key(source, settings['source_options'])}.json"
        with fetched(source, settings["source_options"]) as path:
            host, recording, digest = native.fleet_identity(path)
            row = native.fleet_recording_path(host, recording)
            if settings["force"] or not store.fs.exists(store.path(row)):
                *tables, last = native.fleet_added(path, digest, settings["budget"], settings["alone"])
                if settings["force"]:
                    # While files are replaced the recording is not whole.
                    store.remove(row)
                store.put(dict(tables))
                store.put(dict([last]))
                outcome["status"] = "added"
            else:
                outcome["status"] = "already there"
        store.put({index: json.dumps({"source": source, "host": host, "recording": recording}).encode()})
        if failed_before:
            store.remove(native.fleet_failure_path(source))
        return outcome | {"host": host, "recording": recording}
    except Exception as error:  # noqa: BLE001
        # One that is broken in whatever way does not cost the others.
        text = str(error) or type(error).__name__
        store.put(dict([native.fleet_failure(source, text)]))
        return outcome | {"status": "failed", "error": text}
