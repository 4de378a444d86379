"""`python -m kvmscope.fleet analyse SOURCE.. --dataset URL` and `report URL`: fleets in any store, from a shell."""

from __future__ import annotations

import argparse
import json
import sys

from .._kvmscope import Error, UsageError
from . import Dask, Engine, Spark, analyse, report


def main() -> int:
    """Runs one of the two."""
    program = argparse.ArgumentParser(prog="python -m kvmscope.fleet", description=__doc__)
    commands = program.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("analyse", help="add recordings to a data set")
    adding.add_argument("sources", nargs="+", metavar="SOURCE", help="places of recordings, or patterns with *")
    adding.add_argument("--dataset", required=True, metavar="URL", help="the data set, which is made where nothing is")
    adding.add_argument("--budget", help="judge by this latency budget: a built-in one, or a file")
    adding.add_argument("--force", action="store_true", help="analyse recordings that are there once more")
    answering = commands.add_parser("report", help="answer over all recordings of a data set")
    answering.add_argument("dataset", metavar="URL")
    answering.add_argument("--json", action="store_true", help="print the answer as JSON (schema kvmscope/1)")
    for command in (adding, answering):
        command.add_argument("--engine", choices=["dask", "spark"], help="who works [default: this process]")
        command.add_argument(
            "--scheduler", metavar="ADDRESS", help="scheduler of Dask, or master of Spark [default: this machine]"
        )
        command.add_argument(
            "--workers", type=int, metavar="N", help="processes of Dask on this machine [default: one for each CPU]"
        )
        command.add_argument(
            "--storage-options", type=json.loads, default={}, metavar="JSON", help="options of fsspec for the stores"
        )
    asked = program.parse_args()
    if asked.engine is None and (asked.scheduler or asked.workers):
        program.error("--scheduler and --workers are about an engine; name one with --engine")
    if asked.engine == "spark" and asked.workers:
        program.error("--workers is about Dask; Spark takes --scheduler 'local[N]'")
    engine: Engine | None = None
    if asked.engine == "dask":
        engine = Dask(asked.scheduler, workers=asked.workers)
    elif asked.engine == "spark":
        engine = Spark(master=asked.scheduler)
    options = asked.storage_options
    if asked.command == "report":
        answer = report(asked.dataset, engine=engine, storage_options=options)
        print(answer.json() if asked.json else answer)
        return 0
    done = analyse(
        asked.sources,
        asked.dataset,
        engine=engine,
        budget=asked.budget,
        force=asked.force,
        source_options=options,
        storage_options=options,
    )
    for outcome in done.failed:
        print(f"kvmscope: {outcome.source}: {outcome.error}", file=sys.stderr)
    print(done)
    return 0 if done.added or done.there else 1


def program() -> int:
    """The same, with an error as a sentence and the exit status of the program."""
    try:
        return main()
    except Error as error:
        print(f"kvmscope: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


if __name__ == "__main__":
    sys.exit(program())
