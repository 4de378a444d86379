"""The package and the program agree to the last digit."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import kvmscope
import kvmscope.plan
import pyarrow
import pytest
from conftest import Program, loads

RECORDINGS = [
    "nested-svm-toy",
    "nested-vmx-shadow-on",
    "seed-vhost",
    "two-tracers",
    "lttng-svm-l0",
    "migrate-tcg",
    "ovs-dpdk-chain",
    "hog-samples",
]


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_report_is_that_of_the_program_byte_by_byte(fixtures: Path, program: Program, name: str) -> None:
    path = fixtures / name
    assert kvmscope.open(path).report().json().encode() == program("report", "--json", path)


def test_what_narrows_a_report_narrows_it_as_the_program_does(fixtures: Path, program: Program) -> None:
    path = fixtures / "nested-svm-toy"
    ours = kvmscope.open(path).report(level="L2", vcpu=0, from_ns=10_000_000, to_ns=200_000_000).json()
    assert ours.encode() == program(
        "report", "--json", "--level", "L2", "--vcpu", "0", "--from", "0.01", "--to", "0.2", path
    )


def test_another_witness_counts_as_it_does_for_the_program(fixtures: Path, program: Program) -> None:
    path = fixtures / "svm-linux"
    ours = kvmscope.open(path).report(witness="L1").json()
    assert ours.encode() == program("report", "--json", "--witness", "L1", path)
    assert ours != kvmscope.open(path).report().json()


@pytest.mark.parametrize("name", ["nested-svm-toy", "hog-samples"])
def test_a_budget_judges_as_the_program_does(fixtures: Path, program: Program, name: str) -> None:
    path = fixtures / name
    expected = program("report", "--json", "--budget", "kvm4nfv-2015", path)
    assert kvmscope.open(path).report("kvm4nfv-2015").json().encode() == expected
    assert kvmscope.open(path).report().json().encode() != expected


def test_a_comparison_is_that_of_the_program_byte_by_byte(fixtures: Path, program: Program) -> None:
    before, after = fixtures / "vmx-linux-shadow-off", fixtures / "vmx-linux-shadow-on"
    expected = program("compare", "--json", before, after)
    assert kvmscope.compare(before, after).json().encode() == expected
    opened = kvmscope.open(before)
    assert kvmscope.compare(opened, [after]).json().encode() == expected
    twice = program("compare", "--json", before, before, "--", after, after)
    assert kvmscope.compare([opened, before], [after, after]).json().encode() == twice


CHAINS: list[tuple[dict[str, Any], list[str]]] = [
    ({"vnfs": 8, "size": 64, "nic": "XL710"}, ["--vnfs", "8", "--size", "64", "--nic", "XL710"]),
    (
        {"vnfs": [2, 4], "size": [64, 512], "nic": "XL710", "mps": 256, "hop": "240+0.24", "pmd_cores": 4, "ghz": 2.4},
        "--vnfs 2,4 --size 64,512 --nic XL710 --mps 256 --hop 240+0.24 --pmd-cores 4 --ghz 2.4".split(),
    ),
    (
        {"vnfs": 8, "imix": "64:7,594:4,1518:1", "link": "40G", "pattern": "north-south", "target": "5 Mpps"},
        [
            "--vnfs",
            "8",
            "--imix",
            "64:7,594:4,1518:1",
            "--link",
            "40G",
            "--pattern",
            "north-south",
            "--target",
            "5 Mpps",
        ],
    ),
    (
        {
            "vnfs": 3,
            "size": 64,
            "nic": "XL710",
            "hop": "240+0.24",
            "search": True,
            "must_migrate": True,
            "pmd_cores": 9,
        },
        "--vnfs 3 --size 64 --nic XL710 --hop 240+0.24 --search --must-migrate --pmd-cores 9".split(),
    ),
    (
        {
            "vnfs": 4,
            "size": 64,
            "nic": "XL710",
            "hop": "240+0.24",
            "vnf": "180+0.1",
            "vnf_cores": 2,
            "datapath": "sriov",
        },
        "--vnfs 4 --size 64 --nic XL710 --hop 240+0.24 --vnf 180+0.1 --vnf-cores 2 --datapath sriov".split(),
    ),
]


@pytest.mark.parametrize(("quantities", "options"), CHAINS)
def test_a_plan_is_that_of_the_program_byte_by_byte(
    program: Program, quantities: dict[str, Any], options: list[str]
) -> None:
    assert kvmscope.plan.chain(**quantities).json().encode() == program("plan", "chain", "--json", *options)


def test_a_plan_is_read_and_calibrated_as_the_program_does(fixtures: Path, program: Program) -> None:
    plan = next((fixtures / "plan-chain").glob("**/*.toml"))
    expected = program("plan", "chain", "--json", plan)
    assert kvmscope.plan.chain(plan).json().encode() == expected
    assert kvmscope.plan.chain(plan, search=True).json().encode() == program(
        "plan", "chain", "--json", "--search", plan
    )
    rings = kvmscope.plan.chain(
        vnfs=8, size=64, nic="XL710", calibrate=[fixtures / "channel"], channel_window="vmfunc", channel_batch=8
    )
    options = "plan chain --json --vnfs 8 --size 64 --nic XL710 --channel-window vmfunc --channel-batch 8 --calibrate"
    assert rings.json().encode() == program(*options.split(), fixtures / "channel")
    with pytest.raises(TypeError, match="channel_window"):
        kvmscope.plan.chain(vnfs=8, size=64, nic="XL710", channel_window="vmfunc")
    calibrated = kvmscope.plan.chain(vnfs=3, size=512, nic="XL710", calibrate=fixtures / "ovs-dpdk-chain")
    assert calibrated.json().encode() == program(
        *"plan chain --json --vnfs 3 --size 512 --nic XL710 --calibrate".split(), fixtures / "ovs-dpdk-chain"
    )


def same(ours: object, theirs: object) -> bool:
    """Equal, and of one type: 1 is not 1.0, and a missing value is none that is not a number."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs)
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("name", ["nested-svm-toy", "seed-vhost", "ovs-dpdk-chain"])
def test_every_cell_of_every_table_is_that_of_the_json(fixtures: Path, name: str) -> None:
    report = kvmscope.open(fixtures / name).report()
    cells = 0
    for shown in loads(report.json())["sections"]:
        tables = report.sections[shown["id"]].tables
        assert list(tables) == list(shown["tables"])
        for table, content in shown["tables"].items():
            columns = [column["name"] for column in content["columns"]]
            assert tables[table].columns == columns
            assert tables[table].units == {column["name"]: column["unit"] for column in content["columns"]}
            arrow = pyarrow.table(tables[table])
            assert len(tables[table]) == arrow.num_rows == len(content["rows"])
            for row, expected in zip(arrow.to_pylist(), content["rows"], strict=True):
                for ours, theirs in zip((row[column] for column in columns), expected, strict=True):
                    cells += 1
                    # A whole number of type f64 is written without a point.
                    assert same(ours, theirs) or (isinstance(ours, float) and ours == theirs), (table, row)
    assert cells > 100


@pytest.mark.parametrize("name", ["nested-svm-toy", "seed-vhost"])
def test_findings_are_those_of_the_json(fixtures: Path, name: str) -> None:
    report = kvmscope.open(fixtures / name).report()
    document = loads(report.json())
    theirs = [finding for section in document["sections"] for finding in section["findings"]]
    assert [finding.to_dict() for finding in report.findings] == sorted(theirs, key=lambda finding: finding["rank"])
    for finding in report.findings:
        for key, value in finding.to_dict().items():
            assert getattr(finding, key) == value
    for section in document["sections"]:
        ours = report.sections[section["id"]]
        assert ours.figures == section["figures"] and ours.unknown == section["unknown"]
        assert (ours.question, ours.summary, ours.next) == (section["question"], section["summary"], section["next"])
    assert report.problems == document["problems"]
