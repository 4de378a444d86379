"""Every example in the docstrings and in the documentation runs, and prints what it says."""

from __future__ import annotations

import doctest
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import kvmscope
import kvmscope.plan
import polars
import pytest
from conftest import ROOT

DOCUMENTS = ["docs/use/python.md", "python/README.md"]


def docstrings() -> Iterator[tuple[str, str]]:
    """Names of everything public, and what is said of it."""
    yield "kvmscope", kvmscope.__doc__ or ""
    public = [(name, getattr(kvmscope, name)) for name in kvmscope.__all__]
    public += [(f"plan.{name}", getattr(kvmscope.plan, name)) for name in kvmscope.plan.__all__]
    for name, value in public:
        if inspect.isclass(value) or callable(value):
            yield name, value.__doc__ or ""
        if inspect.isclass(value):
            for inner, member in vars(value).items():
                if not inner.startswith("_"):
                    yield f"{name}.{inner}", member.__doc__ or ""


ALL = dict(docstrings())


@pytest.mark.parametrize("name", ALL)
def test_all_that_is_public_says_what_it_is(name: str) -> None:
    assert len(ALL[name].split()) > 2, f"{name} has no docstring"


def run(text: str, name: str, fixtures: Path) -> None:
    names = {"kvmscope": kvmscope, "fixtures": fixtures}
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(test, out=told.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(told)


def not_ours() -> list[str]:
    """The first column of the table under "Not our words"."""
    table = (ROOT / "docs/read/words.md").read_text().split("## Not our words")[1]
    rows = [line.removeprefix("| ").split(" | ")[0] for line in table.splitlines() if line.startswith("| ")]
    return [word.lower() for word in rows[1:] if not word.startswith("--")]


def test_what_users_read_is_in_our_words() -> None:
    words = not_ours()
    assert len(words) > 20
    texts = ALL | {name: (ROOT / name).read_text() for name in DOCUMENTS}
    texts |= {path.name: path.read_text() for path in (ROOT / "python/notebooks").glob("*.ipynb")}
    for name, text in texts.items():
        found = [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text.lower())]
        assert not found, f"{name}: {found}"


@pytest.mark.parametrize("name", [name for name, text in ALL.items() if ">>>" in text])
def test_examples_of_docstrings_run(name: str, fixtures: Path) -> None:
    run(inspect.cleandoc(ALL[name]), name, fixtures)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_of_documents_run(name: str, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A document names the recordings as one who stands in the repository does.
    monkeypatch.chdir(ROOT)
    text = (ROOT / name).read_text()
    blocks = [block.split("```")[0] for block in text.split("```pycon\n")[1:]]
    run("\n".join(blocks), name, fixtures)
    assert blocks or name != "docs/use/python.md"


def test_notebooks_are_kept_without_what_they_printed_and_are_named() -> None:
    page = (ROOT / "docs/use/python.md").read_text()
    notebooks = sorted((ROOT / "python/notebooks").glob("*.ipynb"))
    assert len(notebooks) == 5
    for path in notebooks:
        cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
        assert cells and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells), path.name
        assert path.name in page


def test_the_example_of_the_cookbook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    block = (ROOT / "docs/use/cookbook.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(block, names)  # noqa: S102 - it is ours
    exits = names["exits"]
    assert isinstance(exits, polars.DataFrame) and len(exits) > 3
