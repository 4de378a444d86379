"""One answer over many recordings of many hosts, on one process, Dask or Spark.

    from kvmscope import fleet

    fleet.analyse("nightly/*", "s3://lab/fleet")                      # one process
    fleet.analyse("s3://lab/nightly/*", "s3://lab/fleet", engine="dask")   # a local cluster
    fleet.analyse("nightly/*", "fleet", engine=fleet.Dask("tcp://scheduler:8786"))
    fleet.report("s3://lab/fleet", engine="spark").summary

`analyse` lets each worker analyse recordings and put their tables into a Parquet data set in any store of fsspec; what is there already is not done
again. `report` merges what workers read of it. What is analysed and merged is the code of the program, so every engine has the same answer as
`kvmscope fleet report`. The page docs/use/compare.md describes the data set and the answers.
"""

from .analysing import Analysed, Outcome, analyse
from .engines import Dask, Engine, OneProcess, Spark
from .reporting import report

__all__ = ["Analysed", "Dask", "Engine", "OneProcess", "Outcome", "Spark", "analyse", "report"]
