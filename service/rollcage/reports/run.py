"""
A training run as a page: what shows whether it learns.

Whether the model uses its tools sensibly (calls, repeated calls, latency and
output by tool), whether its scores rise, which items teach nothing, and how
much the infrastructure took away.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from rollcage.reports import plots, row_plots
from rollcage.reports.burst import KINDS
from rollcage.reports.frames import legend
from rollcage.reports.items import Item, items_of
from rollcage.reports.markup import Markup
from rollcage.reports.page import Card, Tile, nothing, page, table
from rollcage.reports.plots import Point
from rollcage.reports.row_plots import Spread
from rollcage.reports.run_data import RunData, RunRollout, ToolCall
from rollcage.reports.scales import Spelling, percent, plain, quantile, seconds

_MOODS: Final = {"proceed": "good", "hold": "warning", "skip": "bad"}

_WORDS: Final = {**KINDS, "running": "no verdict yet"}

# So many tools and items fit on a page that is still read.
_MOST_TOOLS: Final = 12
_MOST_ITEMS: Final = 160
_MOST_BARS: Final = 60


def run_page(run: RunData) -> str:
    """Return the whole page, HTML."""
    items = items_of(run.rollouts)
    under = [f"{run.url}, looked at {run.now:%Y-%m-%d %H:%M %Z}".rstrip()]
    if run.sampled < sum(1 for r in run.rollouts if r.calls):
        under.append(f"Single calls were read from {run.sampled} of {len(run.rollouts)} rollouts, evenly over the run.")
    cards = [
        _scores(run),
        _verdicts(run),
        _over_time(run, "Calls per rollout", "calls", [float(r.calls) for r in run.rollouts]),
        _over_time(run, "Repeated calls", "repeated calls", [float(r.repeated) for r in run.rollouts]),
        _latency(run.calls),
        _output(run.calls),
        _items(items),
        _masked(run),
    ]
    flat = [item for item in items if item.flat]
    rest = [
        table("Items without spread", ("item", "rollouts", "score"), [(i.item, i.count, plain(i.mean)) for i in flat]),
        table(
            "Masked rollouts",
            ("rollout", "cause", "calls"),
            [(r.rollout, r.cause, r.calls) for r in reversed(run.rollouts) if r.word == "masked"],
        ),
    ]
    return page(title=f"Run {run.run}", under=under, tiles=_tiles(run, items), cards=cards, rest=rest)


def _tiles(run: RunData, items: Sequence[Item]) -> list[Tile]:
    scores = [r.score for r in run.rollouts if r.score is not None]
    words = Counter(r.word for r in run.rollouts)
    calls = sum(r.calls for r in run.rollouts)
    judged = words["masked"] + words["trainable"]
    several, flat = [i for i in items if i.count > 1], [i for i in items if i.flat]
    tiles = [
        Tile("advice", run.advice, ", ".join(run.reasons).replace("_", " "), _MOODS.get(run.advice, "")),
        Tile("rollouts", plain(len(run.rollouts)), f"{plain(words[''])} running"),
        Tile("calls", plain(calls), f"{plain(round(calls / max(len(run.rollouts), 1), 1))} per rollout"),
        Tile(
            "masked",
            plain(words["masked"]),
            f"{percent(words['masked'] / judged)} of those judged" if judged else "",
            "warning" if words["masked"] else "good",
        ),
    ]
    if scores:
        tiles.append(Tile("mean score", plain(round(sum(scores) / len(scores), 3)), f"{plain(len(scores))} graded"))
    if several:
        mood = "warning" if flat else "good"
        tiles.append(Tile("items without spread", plain(len(flat)), f"of {plain(len(several))} tried often", mood))
    return tiles


def _places(run: RunData) -> list[float]:
    """Return where each rollout stands from left to right: by steps if it is known how large they are, else by age."""
    if run.step:
        return [index / run.step for index in range(len(run.rollouts))]
    begun = [r.begun_at for r in run.rollouts if r.begun_at]
    first = min(begun, default=run.now)
    return [((r.begun_at or first) - first).total_seconds() for r in run.rollouts]


def _axis(run: RunData) -> tuple[str, Spelling]:
    return ("steps", plain) if run.step else ("since the run began", seconds)


def _columns(run: RunData) -> list[float]:
    """Return the bounds of the bars: one for each step, or for as many as fit into one."""
    if not run.step:
        return []
    steps = -(-len(run.rollouts) // run.step)
    each = -(-steps // _MOST_BARS)
    return [float(step) for step in range(0, steps + each, each)]


def kind_of(rollout: RunRollout) -> str:
    """Return under which kind of end a rollout is shown."""
    return rollout.word if rollout.word in KINDS else "running"


def _over_time(run: RunData, title: str, what: str, values: Sequence[float]) -> Card:
    words = {
        "calls": "Each dot is a rollout; the line is the mean of neighbours.",
        "repeated calls": "The same tool with the same arguments, again in one rollout. A rise means going in circles.",
    }[what]
    points = [
        Point(at, value, kind_of(r), f"{r.rollout}: {plain(value)} {what}")
        for at, value, r in zip(_places(run), values, run.rollouts, strict=True)
    ]
    if not points:
        return Card(title, nothing("there were no rollouts"), words)
    name, along = _axis(run)
    return Card(title, plots.scatter(points, name=name, what=what, along=along), words, _shown(points))


def _shown(points: Sequence[Point]) -> Markup:
    there = {point.kind for point in points}
    return legend([(kind, _WORDS[kind]) for kind in KINDS if kind in there])


def _scores(run: RunData) -> Card:
    words = "Each dot is a graded rollout; the line is the mean of neighbours."
    points = [
        Point(at, r.score, kind_of(r), f"{r.rollout}: {plain(r.score)}")
        for at, r in zip(_places(run), run.rollouts, strict=True)
        if r.score is not None
    ]
    if not points:
        return Card("Scores", nothing("no rollout was graded"), words)
    name, along = _axis(run)
    return Card("Scores", plots.scatter(points, name=name, what="score", along=along), words, _shown(points))


def _verdicts(run: RunData) -> Card:
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for at, r in zip(_places(run), run.rollouts, strict=True):
        times[kind_of(r)].append(at)
    there = {kind: line for kind, line in times.items() if line}
    words = "Rollouts by when they began. A step that lost many is no sample of what the model does."
    if not there:
        return Card("Verdicts", nothing("there were no rollouts"), words)
    shown = legend([(kind, f"{_WORDS[kind]} {len(line)}") for kind, line in there.items()])
    name, along = _axis(run)
    plot = plots.stacked(there, name=name, words=_WORDS, along=along, columns=_columns(run))
    return Card("Verdicts", plot, words, shown)


def _by_tool(calls: Sequence[ToolCall]) -> list[tuple[str, list[ToolCall]]]:
    tools: dict[str, list[ToolCall]] = defaultdict(list)
    for call in calls:
        tools[call.tool].append(call)
    return sorted(tools.items(), key=lambda one: (-len(one[1]), one[0]))[:_MOST_TOOLS]


def _latency(calls: Sequence[ToolCall]) -> Card:
    rows = []
    for tool, made in _by_tool(calls):
        if took := [call.seconds for call in made if call.seconds is not None]:
            low, middle, high = (quantile(took, share) for share in (0.05, 0.5, 0.95))
            note = f"median {seconds(middle)}, 95 % within {seconds(high)}, {plain(len(took))} calls"
            rows.append(Spread(tool, low, middle, high, note))
    plot = row_plots.spreads(rows, name="a call took") if rows else nothing("no calls were read")
    return Card("Latency by tool", plot, "The dot is the median, the bar holds nine of ten calls.")


def _output(calls: Sequence[ToolCall]) -> Card:
    rows = []
    for tool, made in _by_tool(calls):
        low, middle, high = (quantile([float(call.shown) for call in made], share) for share in (0.05, 0.5, 0.95))
        failed = sum(call.outcome != "ok" for call in made)
        note = f"median {plain(middle)} characters, {percent(failed / len(made))} not ok, {plain(len(made))} calls"
        rows.append(Spread(tool, low, middle, high, note))
    plot = row_plots.spreads(rows, name="characters shown", spell=plain) if rows else nothing("no calls were read")
    return Card("Output by tool", plot, "What the model has to read. The dot is the median, the bar nine of ten calls.")


def _items(items: Sequence[Item]) -> Card:
    words = "Lowest, mean and highest score of each dataset item. Where all are the same (hollow), nothing is learned."
    several = [item for item in items if item.count > 1]
    if not several:
        return Card("Scores by item", nothing("no item was graded more than once"), words)
    step = max(1, -(-len(several) // _MOST_ITEMS))
    strips = [Spread(item.item, item.low, item.mean, item.high, _spelled(item), item.flat) for item in several[::step]]
    shown = legend([("c1", "lowest to highest, mean"), ("flat", "no spread")])
    note = f" {len(strips)} of {len(several)} items." if step > 1 else ""
    return Card("Scores by item", row_plots.strips(strips, name="items, worst first"), words + note, shown)


def _spelled(item: Item) -> str:
    spread = "no spread" if item.flat else f"{plain(item.low)} to {plain(item.high)}"
    return f"{spread}, mean {plain(item.mean)}, {item.count} rollouts"


def _masked(run: RunData) -> Card:
    counts = Counter(r.cause or "unknown" for r in run.rollouts if r.word == "masked")
    words = "What the infrastructure broke; none of it was graded or trained on."
    bars = [(cause.replace("_", " "), float(count), "masked") for cause, count in counts.most_common()]
    plot = row_plots.bars(bars, name="rollouts") if bars else nothing("none were masked")
    return Card("Masked rollouts by cause", plot, words)
