"""
A burst as a page: how fast rollouts got their sandboxes, and what became of them.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rollcage.reports import plots, row_plots
from rollcage.reports.burst_data import Burst, BurstRollout
from rollcage.reports.frames import legend
from rollcage.reports.markup import Markup
from rollcage.reports.page import Card, Tile, nothing, page, table
from rollcage.reports.scales import percent, plain, quantile, seconds

# Kinds of ends, in the order in which they are stacked.
KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "trainable": "trainable",
        "masked": "masked: the infrastructure failed",
        "abandoned": "abandoned",
        "refused": "refused",
        "running": "no verdict seen",
    }
)


def burst_page(burst: Burst) -> str:
    """Return the whole page, HTML."""
    kinds = Counter(kind_of(rollout) for rollout in burst.rollouts)
    under = [
        f"{burst.environment} at {burst.url}, run {burst.run}",
        f"{burst.began_at:%Y-%m-%d %H:%M:%S %Z}, {seconds(burst.seconds)}".strip(),
        *burst.notes,
    ]
    shown = legend([(kind, f"{words} {kinds[kind]}") for kind, words in KINDS.items() if kinds[kind]])
    cards = [
        _first_answers(burst),
        _calls(burst),
        Card(
            "The burst, rollout by rollout",
            _lanes(burst) if burst.rollouts else nothing("there were no rollouts"),
            "Each line is a rollout from its first request to its end; grey while it waited for its first answer.",
            shown,
        ),
        _pool(burst),
        _ends(burst),
    ]
    lost = [r for r in burst.rollouts if kind_of(r) not in {"trainable", "running"}]
    rest = [
        table(
            "Not to be trained on",
            ("rollout", "end", "cause", "sandbox", "calls"),
            [
                (r.rollout, kind_of(r), r.cause or r.refusal, r.sandbox, len(r.call_seconds))
                for r in sorted(lost, key=lambda r: (kind_of(r), r.cause, r.rollout))
            ],
        )
    ]
    return page(title=burst.title, under=under, tiles=_tiles(burst, kinds), cards=cards, rest=rest)


def kind_of(rollout: BurstRollout) -> str:
    """Return under which of KINDS a rollout is shown."""
    if rollout.word in KINDS:
        return rollout.word
    return "refused" if rollout.refusal else "running"


def _tiles(burst: Burst, kinds: Mapping[str, int]) -> list[Tile]:
    first, calls = _first_seconds(burst), [value for r in burst.rollouts for value in r.call_seconds]
    sandboxes = {r.sandbox for r in burst.rollouts if r.sandbox}
    masked, refused = kinds.get("masked", 0), kinds.get("refused", 0)
    share = percent(masked / len(burst.rollouts)) if burst.rollouts else ""
    tiles = [Tile("rollouts", plain(len(burst.rollouts)), f"{plain(len(sandboxes))} sandboxes" if sandboxes else "")]
    if first:
        tiles.append(Tile("first answer, median", seconds(quantile(first, 0.5)), "sandbox and first call"))
        tiles.append(Tile("first answer, 95 %", seconds(quantile(first, 0.95)), f"slowest {seconds(max(first))}"))
    if calls:
        rate = len(calls) / burst.seconds if burst.seconds else 0.0
        tiles.append(Tile("calls", plain(len(calls)), f"{plain(round(rate, 1))} a second"))
    tiles.append(
        Tile("masked", plain(masked), f"{share} of all" if masked else "none", "warning" if masked else "good")
    )
    tiles.append(Tile("refused", plain(refused), "" if refused else "none", "bad" if refused else "good"))
    return tiles


def _first_seconds(burst: Burst) -> list[float]:
    return [r.answered_at - r.asked_at for r in burst.rollouts if r.answered_at is not None]


def _first_answers(burst: Burst) -> Card:
    first = _first_seconds(burst)
    plot = plots.histogram(first, name="until the first answer") if first else nothing("no call was answered")
    return Card("First answers", plot, "How long a rollout waited for its sandbox and its first call together.")


def _calls(burst: Burst) -> Card:
    first = [r.call_seconds[0] for r in burst.rollouts if r.call_seconds]
    later = [value for r in burst.rollouts for value in r.call_seconds[1:]]
    series = {
        kind: (words, values)
        for kind, words, values in (("c1", "first calls", first), ("c2", "later calls", later))
        if values
    }
    plot = plots.ecdf(series, name="a call took at most") if series else nothing("no call was answered")
    words = "Which share of calls was answered within which time."
    return Card("Calls", plot, words, legend([(kind, words) for kind, (words, _) in series.items()]))


def _lanes(burst: Burst) -> Markup:
    lanes = []
    for r in sorted(burst.rollouts, key=lambda r: (r.answered_at is None, r.answered_at, r.asked_at)):
        ended = burst.seconds if r.ended_at is None else r.ended_at
        answered = min(ended, r.answered_at if r.answered_at is not None else ended)
        label = f"{r.rollout}: {kind_of(r)} {r.cause or r.refusal}".rstrip()
        lanes.append((r.asked_at, answered, ended, kind_of(r), label))
    return row_plots.lanes(lanes, name="since the burst began")


def _ends(burst: Burst) -> Card:
    counts = Counter((kind_of(r), r.cause or r.refusal or kind_of(r)) for r in burst.rollouts)
    order = list(KINDS)
    ordered = sorted(counts.items(), key=lambda one: (order.index(one[0][0]), -one[1], one[0][1]))
    bars = [(cause.replace("_", " "), float(count), kind) for (kind, cause), count in ordered]
    plot = row_plots.bars(bars, name="rollouts") if bars else nothing("there were no rollouts")
    words = "How rollouts ended. What the model broke itself is trained on; only what the infrastructure broke is not."
    seen = {kind for kind, _ in counts}
    return Card("Verdicts", plot, words, legend([(kind, KINDS[kind]) for kind in order if kind in seen]))


def _pool(burst: Burst) -> Card:
    words = "Sandboxes that stood ready, were in use, were starting; rollouts in line."
    if not burst.pool:
        return Card("The pool", nothing("nobody could look at the pool"), words)
    series = {
        "c2": ("ready", [(level.at, float(level.warm)) for level in burst.pool]),
        "c1": ("in use", [(level.at, float(level.claimed)) for level in burst.pool]),
        "c4": ("starting", [(level.at, float(level.starting)) for level in burst.pool]),
        "c3": ("in line", [(level.at, float(level.queued)) for level in burst.pool]),
    }
    shown = legend([(kind, words) for kind, (words, _) in series.items()])
    return Card("The pool", plots.levels(series, name="since the burst began"), words, shown)
