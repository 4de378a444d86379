"""Events come in batches, while the trace is read."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import kvmscope
import polars
import pyarrow
import pytest
from conftest import loads, rows_of


def threads() -> int:
    """Threads of this process that read events, with those that help them: these have the same name."""
    names = [Path(task, "comm") for task in Path("/proc/self/task").iterdir()]
    return sum(name.read_text().startswith("kvmscope-event") for name in names if name.exists())


def test_all_exits_come_in_the_order_of_time(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "nested-svm-toy")
    events = recording.events("kvm_exit")
    assert events.columns[:3] == ["time_ns", "cpu", "tid"] and "exit_reason" in events.columns
    rows = pyarrow.concat_tables(pyarrow.table(batch) for batch in events)
    document = loads(recording.report().json())
    assert rows.num_rows == sum(row["count"] for row in rows_of(document, "flow", "exits"))
    times = rows["time_ns"].to_pylist()
    assert times == sorted(times)
    assert (events.lost, events.gaps) == (0, 0)


def test_columns_come_as_they_are_asked_for(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "nested-svm-toy")
    named = pyarrow.table(recording.events("kvm_exit", columns=["exit_reason", "time_ns"]))
    everything = pyarrow.table(recording.events("kvm_exit"))
    assert named.column_names == ["exit_reason", "time_ns"]
    assert named["exit_reason"] == everything["exit_reason"]


def test_several_kinds_come_in_one_stream(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "nested-svm-toy")
    both = pyarrow.table(recording.events(["kvm_entry", "kvm_exit"], columns=["time_ns", "event", "exit_reason"]))
    counts = dict(polars.DataFrame(both).group_by("event").len().iter_rows())
    for event in ("kvm_entry", "kvm_exit"):
        assert counts[event] == pyarrow.table(recording.events(event, columns=["time_ns"])).num_rows > 0
    entries = polars.DataFrame(both).filter(polars.col("event") == "kvm_entry")
    assert entries["exit_reason"].null_count() == len(entries), "an entry has no reason"


def test_text_of_fields_is_text(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "vmx-linux-shadow-on")
    names = polars.DataFrame(recording.events("sched_switch", columns=["prev_comm", "prev_pid"]))
    assert names["prev_comm"].str.len_bytes().min() is not None
    assert "\0" not in "".join(names["prev_comm"].unique())


def test_what_is_not_there_is_named_with_what_is(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "nested-svm-toy")
    with pytest.raises(kvmscope.UsageError, match=r"trace\.dat describes no event `kvm_exi`.*kvm_exit"):
        recording.events("kvm_exi")
    with pytest.raises(kvmscope.UsageError, match=r"kvm_exit in .*trace\.dat has no column `exit_reaso`.*exit_reason"):
        recording.events("kvm_exit", columns=["exit_reaso"])
    with pytest.raises(kvmscope.UsageError, match="kvm_entry in .* has no column `reason`"):
        recording.events("kvm_entry", columns=["reason"])
    with pytest.raises(kvmscope.UsageError, match="no trace 7; traces in this recording: 1"):
        recording.events("kvm_exit", trace=7)


def test_a_stream_is_read_once(fixtures: Path) -> None:
    events = kvmscope.open(fixtures / "nested-svm-toy").events("kvm_exit", columns=["time_ns"])
    assert pyarrow.table(events).num_rows > 0
    for read in (pyarrow.table, list, lambda events: events.read_all(), next):
        with pytest.raises(kvmscope.UsageError, match="ask the recording for them again"):
            read(events)


def test_a_stream_that_was_iterated_or_closed_is_not_silently_empty(fixtures: Path) -> None:
    recording = kvmscope.open(fixtures / "nested-svm-toy")
    events = recording.events("kvm_exit", columns=["time_ns"])
    assert sum(len(batch) for batch in events) == 1828
    assert next(events, None) is None, "an iterator that has ended stays so"
    with pytest.raises(kvmscope.UsageError, match="ask the recording for them again"):
        list(events)
    with recording.events("kvm_exit", columns=["time_ns"]) as closed:
        pass
    with pytest.raises(kvmscope.UsageError, match="was closed"):
        closed.read_all()


def test_reasons_have_names_and_times_can_be_subtracted(fixtures: Path) -> None:
    for name in ("nested-svm-toy", "vmx-linux-shadow-on"):
        recording = kvmscope.open(fixtures / name)
        exits = polars.DataFrame(recording.events("kvm_exit"))
        counted = dict(exits.group_by("reason").len().iter_rows())
        told: dict[str, int] = {}
        for row in rows_of(loads(recording.report().json()), "flow", "exits"):
            # Events are of the first trace, tables of all.
            if row["machine"] == "L0":
                told[row["reason"]] = told.get(row["reason"], 0) + row["count"]
        assert counted == told, name
        assert exits["time_ns"].dtype == polars.Int64 and exits["time_ns"].diff().min() is not None
    both = polars.DataFrame(recording.events(["kvm_entry", "kvm_exit"], columns=["event", "reason"]))
    assert both.filter(polars.col("event") == "kvm_entry")["reason"].null_count() == both["event"].eq("kvm_entry").sum()


def test_a_reader_that_leaves_ends_the_reading(big: Path) -> None:
    with kvmscope.open(big).events("kvm_exit") as events:
        assert len(next(events)) > 0
        assert threads() > 0
    del events
    stream = kvmscope.open(big).events("kvm_exit")
    reader = pyarrow.RecordBatchReader.from_stream(stream)
    reader.read_next_batch()
    del reader, stream
    gc.collect()
    ends = time.monotonic() + 10
    while threads() and time.monotonic() < ends:
        time.sleep(0.01)
    assert threads() == 0


def test_other_threads_run_meanwhile(big: Path) -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    ticker = threading.Thread(target=tick)
    ticker.start()
    kvmscope.open(big).report()
    done.set()
    ticker.join()
    assert ticks > 5


LONG = """
import kvmscope, sys, pyarrow
recording = kvmscope.open(sys.argv[1])
print("ready", flush=True)
try:
    {work}
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def progress(pid: int) -> tuple[int, int]:
    """How long the main thread of a process has run, in ticks, and how often it has waited for another one."""
    task = Path(f"/proc/{pid}/task/{pid}")
    stat = (task / "stat").read_text().rpartition(")")[2].split()
    lines = (task / "status").read_text().splitlines()
    waits = next(line for line in lines if line.startswith("voluntary_ctxt_switches:"))
    return int(stat[11]) + int(stat[12]), int(waits.split()[1])


def interrupted(program: str, big: Path) -> tuple[str, str, int]:
    """What a Python program prints, says and returns that gets Ctrl-C once it is ready and at work."""
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(big)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    ticks, waits = progress(child.pid)
    ends = time.monotonic() + 60
    # Three ticks are far more than what leads to the call; while it waits for threads that read, it runs little.
    while time.monotonic() < ends:
        now = progress(child.pid)
        if now[0] >= ticks + 3 or now[1] >= waits + 10:
            break
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    said, complained = child.communicate(timeout=60)
    return said, complained, child.returncode


@pytest.mark.parametrize(
    "work",
    [
        "recording.report(vcpu=0)",
        "kvmscope.open(sys.argv[1]).timeline()",
        "for batch in recording.events('kvm_exit'): pass",
        "recording.events('kvm_exit').read_all()",
    ],
)
def test_ctrl_c_is_heard(big: Path, work: str) -> None:
    assert interrupted(LONG.format(work=work), big) == ("interrupted\n", "", 0)


# Once it is ready the library reads: what is before that is heard as anywhere else.
OF_LIBRARY = """
import kvmscope, sys, pyarrow
reader = pyarrow.RecordBatchReader.from_stream(kvmscope.open(sys.argv[1]).events("kvm_exit"))
reader.read_next_batch()
print("ready", flush=True)
reader.read_all()
print("finished", flush=True)
"""


def test_ctrl_c_ends_the_reading_of_an_arrow_library_too(big: Path) -> None:
    said, complained, status = interrupted(OF_LIBRARY, big)
    # C has no exceptions: the library's own error is what it makes of ours.
    assert (said, status) == ("", 1) and "reading the events was interrupted: KeyboardInterrupt" in complained
