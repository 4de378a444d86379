"""Who runs the pieces of work: this process, the workers of Dask, or those of Spark.

An engine has one method: `run(work, pieces)` calls a function for each piece somewhere and gives the results as they come, in any order. Pieces and
results are bytes, so that nothing else needs to be known on the other side than this package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

Work = Callable[[bytes], bytes]


class Engine(Protocol):
    """Whoever runs pieces of work."""

    def __enter__(self) -> Self:
        """Starts what has to be started."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends what was started here."""

    @property
    def workers(self) -> int:
        """How many pieces are worked on at a time."""

    @property
    def shares_cpus(self) -> bool:
        """Whether each piece has one CPU, because others are worked on beside it; else it may take all."""

    def run(self, work: Work, pieces: Sequence[bytes]) -> Iterator[bytes]:
        """The result of each piece, in any order."""


class OneProcess:
    """This process, one piece after the other; the analysis of a trace uses all CPUs."""

    workers = 1
    shares_cpus = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, work: Work, pieces: Sequence[bytes]) -> Iterator[bytes]:
        return map(work, pieces)


class Dask:
    """A scheduler of Dask by its address or client; without one, a cluster of processes on this machine."""

    shares_cpus = True

    def __init__(self, scheduler: Any = None, *, workers: int | None = None) -> None:
        self._scheduler = scheduler
        self._wanted = workers
        self._client: Any = None
        self._cluster: Any = None

    def __enter__(self) -> Self:
        from distributed import Client, LocalCluster

        if self._scheduler is None:
            count = self._wanted or os.cpu_count() or 1
            self._cluster = LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0")
            self._client = Client(self._cluster)
        elif isinstance(self._scheduler, Client):
            self._client = self._scheduler
        else:
            self._client = Client(self._scheduler)
        return self

    def __exit__(self, *_: object) -> None:
        # A client that was given stays with whoever gave it.
        if self._client is not self._scheduler:
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()
        self._client = self._cluster = None

    @property
    def workers(self) -> int:
        return max(1, int(sum(self._client.nthreads().values())))

    def run(self, work: Work, pieces: Sequence[bytes]) -> Iterator[bytes]:
        from distributed import as_completed

        # A few pieces a worker are under way at a time: neither they nor their results pile up here.
        ahead = 4 * self.workers
        rest = iter(pieces)
        running = as_completed(loop=self._client.loop, with_results=True)
        for piece in (piece for _, piece in zip(range(ahead), rest)):
            running.add(self._client.submit(work, piece, pure=False))
        for _, result in running:
            for piece in (piece for _, piece in zip(range(1), rest)):
                running.add(self._client.submit(work, piece, pure=False))
            yield result


class Spark:
    """A session of Spark, or a new one with this master; without either, all CPUs of this machine."""

    shares_cpus = True

    def __init__(self, session: Any = None, *, master: str | None = None) -> None:
        self._given = session
        self._master = master
        self._session: Any = None

    def __enter__(self) -> Self:
        if self._given is not None:
            self._session = self._given
            return self
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        builder = SparkSession.builder.appName("kvmscope").master(self._master or "local[*]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
        }.items():
            if self._master is None or self._master.startswith("local") or not name.startswith("spark.driver"):
                builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("ERROR")
        return self

    def __exit__(self, *_: object) -> None:
        if self._given is None:
            self._session.stop()
        self._session = None

    @property
    def workers(self) -> int:
        return max(1, int(self._session.sparkContext.defaultParallelism))

    def run(self, work: Work, pieces: Sequence[bytes]) -> Iterator[bytes]:
        if not pieces:
            return
        import pyarrow
        from pyspark.sql.types import BinaryType, StructField, StructType

        def worked(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            for batch in batches:
                for piece in batch.column(0):
                    yield pyarrow.record_batch(
                        [pyarrow.array([work(piece.as_py())], pyarrow.binary())], names=["result"]
                    )

        frame = self._session.createDataFrame(
            [(bytearray(piece),) for piece in pieces], StructType([StructField("piece", BinaryType())])
        )
        frame = frame.repartition(min(len(pieces), 4 * self.workers))
        results = frame.mapInArrow(worked, StructType([StructField("result", BinaryType())]))
        # One partition of results at a time is here; without prefetching, one after the other would be worked on.
        for row in results.toLocalIterator(prefetchPartitions=True):
            yield bytes(row.result)


def engine_of(engine: Engine | str | None) -> Engine:
    """An engine by its name: `dask`, `spark`; none is this process."""
    if engine is None:
        return OneProcess()
    if isinstance(engine, str):
        known: dict[str, Callable[[], Engine]] = {"dask": Dask, "spark": Spark, "one process": OneProcess}
        if engine not in known:
            raise ValueError(
                f"{engine!r} is no engine; there are {', '.join(known)}, or give Dask(address) or Spark(session)"
            )
        return known[engine]()
    return engine
