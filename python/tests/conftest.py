"""What all tests share: the bundled recordings, and the program that they compare with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

Program = Callable[..., bytes]


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return ROOT / "fixtures"


@pytest.fixture(scope="session")
def program() -> Program:
    """Runs the program and returns what it printed. A status that only judges the answer is one."""
    path = Path(os.environ.get("KVMSCOPE", ROOT / "target/debug/kvmscope"))
    if not path.exists():
        pytest.skip(f"kvmscope: {path} is not built; the package was not compared with the program")

    def run(*arguments: str | Path) -> bytes:
        done = subprocess.run([path, *arguments], capture_output=True, check=False)
        assert done.returncode in (0, 3), done.stderr.decode()
        return done.stdout

    return run


@pytest.fixture(scope="session")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that takes seconds to read: exits of one vCPU, in text."""
    path = tmp_path_factory.mktemp("big") / "trace.txt"
    with path.open("w") as out:
        out.write("cpus=1\n")
        for exit in range(400_000):
            at = 62.0 + exit * 20e-6
            out.write(
                f"           nestv-98    [000] {at:15.9f}: kvm_exit:              exit_reason=10 guest_rip=0x104a7 isa=1\n"
            )
            out.write(f"           nestv-98    [000] {at + 8e-6:15.9f}: kvm_entry:             vcpu_id=0 rip=0x104a9\n")
    return path


def rows_of(document: dict[str, Any], section: str, table: str) -> list[dict[str, Any]]:
    """The rows of a table in what `--json` prints."""
    found = next(one for one in document["sections"] if one["id"] == section)["tables"][table]
    names = [column["name"] for column in found["columns"]]
    return [dict(zip(names, row, strict=True)) for row in found["rows"]]


def loads(text: str | bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The closing lines that tools/test.sh reads: what was skipped and why, and one line of sums."""
    count = {outcome: len(terminalreporter.getreports(outcome)) for outcome in ("passed", "failed", "error", "skipped")}
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        terminalreporter.write_line("skipped: " + reason.removeprefix("Skipped: "))
    failed = count["failed"] + count["error"]
    terminalreporter.write_line(f"{count['passed']} passed, {failed} failed, of the Python package")
