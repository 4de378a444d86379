"""Where KVM hosts lose performance, and what to change.

A recording is opened once; its facts are computed once, when they are first asked for:

>>> import kvmscope
>>> recording = kvmscope.open(fixtures / "nested-svm-toy")
>>> report = recording.report()
>>> len(report.sections["flow"].tables["exits"])
12
"""

from kvmscope import plan
from kvmscope._kvmscope import (
    Error,
    EventStream,
    Finding,
    NoAnswerError,
    Recording,
    Report,
    Section,
    Table,
    Timeline,
    UsageError,
    __version__,
    compare,
    open,
)

__all__ = [
    "Error",
    "EventStream",
    "Finding",
    "NoAnswerError",
    "Recording",
    "Report",
    "Section",
    "Table",
    "Timeline",
    "UsageError",
    "__version__",
    "compare",
    "open",
    "plan",
]
