"""Measures kvmscope.fleet on generated recordings: see tools/fleet-bench.sh, which prepares them.

usage: fleet_bench.py SCRATCH RECORDINGS
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from kvmscope import fleet


def main() -> None:
    scratch, count = Path(sys.argv[1]), int(sys.argv[2])
    if sys.argv[3:]:
        # A process of its own for each measurement of memory: the peak is never given back.
        some, place = int(sys.argv[3]), sys.argv[4]
        measured(scratch, some, place)
        return
    few = max(count // 10, 20)
    sources = recordings(scratch)

    print("\n-- scaling: analyse on 1 and on 2 workers of Dask (bar: at least 1.6 times in working time)")
    took = {}
    for workers in (1, 2):
        begin = time.monotonic()
        with fleet.Dask(workers=workers) as cluster:
            running = fleet.Dask(cluster._client)
            # Workers import the package before the clock runs.
            fleet.analyse(sources[: 2 * workers], scratch / f"warm-{workers}", engine=running)
            started = time.monotonic() - begin
            begin = time.monotonic()
            done = fleet.analyse(sources[: 4 * few], scratch / f"scaling-{workers}", engine=running)
            took[workers] = time.monotonic() - begin
        print(
            f"   {workers} worker: {took[workers]:.2f} s for {len(done.added)} recordings, start-up {started:.2f} s, load {load()}"
        )
    print(f"   ratio {took[1] / took[2]:.2f}")

    print(f"\n-- cost of a recording among {few} and among {count}, and the driver's peak memory (bar: both flat)")
    for some in (few, count):
        command = [sys.executable, __file__, str(scratch), str(count), str(some), str(scratch / f"flat-{some}")]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout, end="")

    print("\n-- answers over the larger one (bar: identical)")
    place = scratch / f"flat-{count}"
    engines: dict[str, fleet.Engine] = {"one process": fleet.OneProcess(), "dask": fleet.Dask(workers=2)}
    if shutil.which("java"):
        engines["spark"] = fleet.Spark(master="local[2]")
    else:
        print("   spark is left out: there is no java (Debian: openjdk-17-jre-headless)")
    answers = {}
    for name, engine in engines.items():
        begin = time.monotonic()
        answers[name] = fleet.report(place, engine=engine).json()
        print(f"   {name}: {time.monotonic() - begin:.2f} s with start-up, {len(answers[name])} bytes, load {load()}")
    same = len(set(answers.values())) == 1
    print(f"   {'identical' if same else 'DIFFERENT'}")
    truth, answer = json.loads((scratch / "nightly/truth.json").read_text()), json.loads(answers["one process"])
    table = answer["sections"][0]["tables"]["outliers"]
    named = sorted({row[0] for row in table["rows"]})
    planted = sorted(truth["shadowing_off"] + truth["hog"])
    kernels = [one["subject"] for one in answer["sections"][0]["findings"] if one["rule"] == "FLT-KERNEL"]
    print(
        f"   planted {', '.join(planted)}; named {', '.join(named)}; kernel {truth['kernel']}, named {'; '.join(kernels)}"
    )
    if not same or named != planted or not all(kernel.startswith(truth["kernel"]) for kernel in kernels):
        sys.exit("the answers are not what they should be")


def recordings(scratch: Path) -> list[str]:
    return sorted(str(path) for path in (scratch / "nightly").iterdir() if path.is_dir())


def measured(scratch: Path, some: int, place: str) -> None:
    """Adds so many on two workers, answers, and says what that took."""
    sources = recordings(scratch)[:some]
    with fleet.Dask(workers=2) as cluster:
        running = fleet.Dask(cluster._client)
        fleet.analyse(sources[:2], place + "-warm", engine=running)
        begin = time.monotonic()
        fleet.analyse(sources, place, engine=running)
        added = time.monotonic() - begin
        begin = time.monotonic()
        fleet.report(place, engine=running)
        answered = time.monotonic() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"   {some}: {1000 * added / some:.2f} ms a recording to add, {1000 * answered / some:.2f} ms to answer, driver {peak:.0f} MiB, load {load()}"
    )


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
