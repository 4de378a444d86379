"""Errors are exceptions with the program's sentence and the place; damage is counted and located."""

from __future__ import annotations

import shutil
from pathlib import Path

import kvmscope
import kvmscope.plan
import pytest
from conftest import Program, loads


@pytest.fixture
def garbage(tmp_path: Path) -> Path:
    path = tmp_path / "garbage.dat"
    path.write_bytes(b"\1\2\3 no trace " * 40)
    return path


def complaint(program: Program, *arguments: str | Path) -> str:
    """What the program says on standard error when it has no answer."""
    with pytest.raises(AssertionError) as failed:
        program(*arguments)
    return str(failed.value).removeprefix("kvmscope: ").splitlines()[0]


def test_what_cannot_be_opened_is_said_as_the_program_says_it(program: Program, garbage: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", garbage, tmp_path):
        with pytest.raises(kvmscope.NoAnswerError) as error:
            kvmscope.open(path).report()
        assert str(error.value) == complaint(program, "report", "--json", path), path
        assert str(path) in str(error.value)


def test_damage_is_located(program: Program, fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged.dat"
    content = (fixtures / "svm-linux/L0/trace.dat").read_bytes()
    path.write_bytes(content[: len(content) * 9 // 10])
    report = kvmscope.open(path).report()
    assert report.json().encode() == program("report", "--json", path)
    assert report.problems == loads(report.json())["problems"] != []
    located = [problem for problem in report.problems if problem["offset"] is not None]
    assert located and all(problem["file"].endswith("damaged.dat") for problem in located)
    events = kvmscope.open(path).events("kvm_exit", columns=["time_ns"])
    assert len(events.read_all()) > 100
    assert events.problems and all(problem in report.problems for problem in events.problems)


def test_what_holds_no_event_is_said_with_its_place(fixtures: Path, tmp_path: Path) -> None:
    path = tmp_path / "truncated.dat"
    content = (fixtures / "nested-svm-toy/L0/trace.dat").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(kvmscope.NoAnswerError, match=r"truncated\.dat: the list of options is truncated at byte 0x"):
        kvmscope.open(path).report()


def test_a_part_that_is_gone_does_not_cost_the_others(fixtures: Path, tmp_path: Path) -> None:
    path = shutil.copytree(fixtures / "svm-linux", tmp_path / "half")
    trace = path / "L0/trace.dat"
    trace.write_bytes(b"gone")
    report = kvmscope.open(path).report()
    assert any("trace.dat" in problem["file"] for problem in report.problems)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"budget": "kvm4nfv-2016"}, "neither a built-in budget nor a file"),
        ({"budget": 'schema = "kvmscope.budget/1"\nname = "x"\nlimit = 3\n'}, "budget:3"),
        ({"vm": "nobody's"}, "nest-98"),
        ({"level": "L-1"}, "L-1"),
        ({"from_ns": 5, "to_ns": 5}, "from_ns must be before to_ns"),
        ({"vm": "web"}, "vm='web': this recording has no such VM"),
        ({"vcpu": 7}, "vcpu=7: .* has no such vCPU"),
        ({"from_ns": 10**18}, "from_ns and to_ns are nanoseconds since its first event"),
        ({"from_ns": -5}, "from_ns=-5: write a whole number that is not negative"),
        ({"vcpu": -1}, "vcpu=-1: write a whole number that is not negative"),
    ],
)
def test_what_cannot_be_asked_is_refused(fixtures: Path, asked: dict[str, str], sentence: str) -> None:
    with pytest.raises(kvmscope.UsageError, match=sentence):
        kvmscope.open(fixtures / "nested-svm-toy").report(**asked)  # type: ignore[arg-type]


def test_a_vcpu_that_is_not_there_is_named_with_those_that_are(fixtures: Path) -> None:
    with pytest.raises(kvmscope.UsageError, match="no such vCPU; there is vCPU 0 of nest-98"):
        kvmscope.open(fixtures / "nested-svm-toy").timeline(7)


@pytest.mark.parametrize(
    ("quantities", "sentence"),
    [
        ({"vnfs": 8}, "name VNFs, a size and a card"),
        ({"vnfs": 0, "size": 64, "nic": "XL710"}, "vnfs=0: write how many, from 1 to 256"),
        ({"vnfs": 8, "size": 64, "nic": "XL710", "vnf_cores": 2}, "vnf_cores needs what a packet takes"),
        ({"vnfs": 8, "size": 64, "link": "40G", "mps": 256}, "about the PCIe link"),
        ({"vnfs": 8, "size": 64, "nic": "XL710", "pattern": "up"}, "north-south"),
        ({"plan": "schema = 1\n"}, "plan:1"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(quantities: dict[str, int | str], sentence: str) -> None:
    with pytest.raises(kvmscope.UsageError, match=sentence):
        kvmscope.plan.chain(**quantities)  # type: ignore[arg-type]


def test_quantities_beside_a_plan_are_refused(fixtures: Path) -> None:
    plan = next((fixtures / "plan-chain").glob("**/*.toml"))
    with pytest.raises(TypeError, match="size would not act beside a plan"):
        kvmscope.plan.chain(plan, size=64)


def test_a_name_that_is_not_there_is_refused_with_those_that_are(fixtures: Path) -> None:
    report = kvmscope.open(fixtures / "nested-svm-toy").report()
    with pytest.raises(kvmscope.UsageError, match="no section 'nope'; there are: flow, latency"):
        report.sections["nope"]
    with pytest.raises(KeyError, match="no table 'exit'; .* Did you mean 'exits'?"):
        report.sections["flow"].tables["exit"]
    assert report.sections.get("nope") is None and "nope" not in report.sections


def test_two_kinds_of_events_that_are_no_list_are_refused(fixtures: Path) -> None:
    with pytest.raises(kvmscope.UsageError, match="several kinds of events are a list"):
        kvmscope.open(fixtures / "nested-svm-toy").events("kvm_exit", "sched_switch")


def test_all_errors_are_one_kind() -> None:
    assert issubclass(kvmscope.NoAnswerError, kvmscope.Error) and issubclass(kvmscope.UsageError, kvmscope.Error)


def test_a_packed_recording_opens_and_leaves_nothing_behind(program: Program, fixtures: Path, tmp_path: Path) -> None:
    packed = tmp_path / "toy.kvmscope"
    program("pack", fixtures / "nested-svm-toy", "-o", packed)
    before = set(Path("/tmp").glob(".kvmscope-unpacked.*"))
    recording = kvmscope.open(packed)
    assert recording.path == str(packed) and len(recording.report().findings) == 2
    del recording
    assert set(Path("/tmp").glob(".kvmscope-unpacked.*")) <= before
