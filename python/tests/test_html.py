"""What notebooks show is what the program's page shows."""

from __future__ import annotations

from pathlib import Path

import kvmscope
import pytest
from conftest import Program


@pytest.fixture(scope="module")
def page(fixtures: Path, program: Program, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "page.html"
    program("report", "--html", path, fixtures / "nested-svm-toy")
    return path.read_text()


@pytest.fixture(scope="module")
def recording(fixtures: Path) -> kvmscope.Recording:
    return kvmscope.open(fixtures / "nested-svm-toy")


def between(text: str, begins: str, ends: str) -> str:
    return begins + text.split(begins, 1)[1].split(ends, 1)[0] + ends


def test_a_table_is_that_of_the_page(recording: kvmscope.Recording, page: str) -> None:
    tables = recording.report().sections["flow"].tables
    html = tables["exits"]._repr_html_()
    assert html is not None and between(html, '<section class="table', "</section>") in page
    assert 'data-v="' in html and "<script" not in html
    assert tables["exit_bins"]._repr_html_() is None, "what is for programs alone has its text"


def test_times_of_emulated_hardware_are_marked(recording: kvmscope.Recording) -> None:
    table = recording.report().sections["flow"].tables["exits"]
    for shown in (
        table._repr_html_(),
        str(table),
        recording.timeline()._repr_html_(),
        recording.report()._repr_html_(),
    ):
        assert shown is not None and "times are not" in shown


def test_findings_are_cards_of_the_page(recording: kvmscope.Recording, page: str) -> None:
    for finding in recording.report().findings:
        card = between(finding._repr_html_(), "<article", "</article>")
        assert card in page and finding.id in card


def test_a_timeline_is_drawn_as_on_the_page(recording: kvmscope.Recording, page: str) -> None:
    drawn = recording.timeline()._repr_html_()
    lanes = between(drawn, '<div class="lane">', "</svg>")
    assert lanes in page and lanes.count("<rect") + lanes.count("<path") > 3


def test_a_report_has_all_figures_of_the_page_and_a_style_of_its_own(recording: kvmscope.Recording, page: str) -> None:
    html = recording.report()._repr_html_()
    assert html.startswith('<div class="kvmscope"><style>@scope {') and "<script" not in html
    # The drawings of its sections; those of the timeline are the timeline's.
    figures = [figure.split("</figure>")[0] for figure in page.split('<figure id="')[1:]]
    assert len(figures) > 1 and all(figure in html for figure in figures)
    section = recording.report().sections["latency"]._repr_html_()
    assert 'id="latency"' in section and 'id="flow"' not in section
