"""Pages as a browser would read them: whole, harmless, and never without an answer."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rollcage.reports.burst import burst_page
from rollcage.reports.burst_data import BurstRollout
from rollcage.reports.run import run_page
from support.reports import BURST, RUN, hostile_burst, hostile_run, rollout


class Reader(HTMLParser):
    """Reads a page; tells of tags that were not closed, and of what it would do."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.figures: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.figures += [value or "" for name, value in attrs if name in {"x", "y", "width", "height", "points", "cx"}]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize("page", [hostile_burst(), hostile_run()], ids=["burst", "run"])
def test_what_a_model_wrote_is_shown_and_does_nothing(page: str) -> None:
    reader = read(page)
    assert "alert(1)" in reader.text
    assert not reader.tags & {"script", "img", "iframe", "object", "link", "base", "form", "a"}
    assert not any(name.startswith("on") for name in reader.attributes)
    assert not set("\x1b\u202e") & set(page)


@pytest.mark.parametrize("page", [burst_page(BURST), run_page(RUN)], ids=["burst", "run"])
def test_a_page_needs_nothing_from_elsewhere(page: str) -> None:
    reader = read(page)
    assert not reader.attributes & {"src", "href", "xlink:href", "srcset"}
    assert "url(" not in page
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(burst_page(replace(BURST, rollouts=(), pool=(), seconds=0.0)), id="a burst of nothing"),
        pytest.param(burst_page(replace(BURST, rollouts=BURST.rollouts[2:])), id="a burst that was refused"),
        pytest.param(
            burst_page(replace(BURST, rollouts=(BurstRollout("r", 0, 0, 0, (0.0,)),), seconds=0.0)),
            id="a burst in no time",
        ),
        pytest.param(run_page(replace(RUN, rollouts=(), calls=(), sampled=0)), id="a run of nothing"),
        pytest.param(run_page(replace(RUN, rollouts=(rollout(0, begun_at=None),))), id="a rollout that never began"),
        pytest.param(run_page(replace(RUN, rollouts=(rollout(1, -3.5, "x"), rollout(2, -3.5, "x")))), id="below zero"),
        pytest.param(run_page(RUN), id="a run"),
        pytest.param(burst_page(BURST), id="a burst"),
    ],
)
def test_every_figure_is_a_number(page: str) -> None:
    for value in read(page).figures:
        assert "nan" not in value
        assert "inf" not in value


def test_a_burst_tells_what_became_of_each_rollout() -> None:
    text = read(burst_page(BURST)).text
    for words in ("node lost", "claim timed out", "finished", "masked: the infrastructure failed 1", "2 sandboxes"):
        assert words in text


def test_a_run_tells_advice_scores_and_items_that_teach_nothing() -> None:
    text = read(run_page(RUN)).text
    for words in ("hold", "many masked", "node lost", "hopeless", "items without spread", "9 graded"):
        assert words in text


def test_a_run_is_told_by_steps_if_it_is_known_how_large_they_are() -> None:
    read = Reader()
    read.feed(run_page(replace(RUN, step=4)))
    # Ten rollouts: two whole steps, and the one that was lost at the end of a third.
    assert "steps" in read.text
    assert "since the run began" not in read.text
    assert (read.text.count("4 trainable"), "1 masked" in read.text) == (2, True)


def test_a_page_says_from_how_many_rollouts_it_read_calls() -> None:
    assert "from 2 of 10 rollouts" in read(run_page(RUN)).text
