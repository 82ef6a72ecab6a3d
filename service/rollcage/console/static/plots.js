// The plots of a run: each over groups of its rollouts, and the spread of scores over its dataset items.

import { Chart } from "./chart.js";
import { milliseconds, percent, plain } from "./words.js";

const VERDICTS = ["trainable", "masked", "abandoned", "running"];
const OUTCOMES = ["ok", "failed", "timed_out", "malformed", "refused"];
const UNGRADED = "not graded";

/** All plots, each with "element" and "update({groups, items})". */
export function plots() {
    const of = (options, series, labels = ({ groups }) => groups.map((group) => `${group.number}`)) => {
        const chart = new Chart(options);
        return {
            element: chart.element,
            update: (data) => chart.update({ labels: labels(data), series: series(data) }),
        };
    };
    const each = (groups, take) => groups.map((group) => take(group) ?? null);
    return [
        of({ title: "Reward", note: "mean, lowest and highest", nothing: UNGRADED }, ({ groups }) => [
            spread(
                "score",
                groups.map((group) => group.score),
            ),
        ]),
        of({ title: "Verdicts", note: "rollouts", kind: "bars", whole: true }, ({ groups }) =>
            VERDICTS.map((word) => ({
                name: word,
                tone: word,
                values: each(groups, (group) => group.verdicts[word] ?? 0),
            })),
        ),
        of({ title: "Calls per rollout" }, ({ groups }) => [
            { name: "mean", tone: "first", values: each(groups, (group) => group.calls) },
            { name: "most", tone: "second", values: each(groups, (group) => group.mostCalls) },
        ]),
        of(
            { title: "Repeated calls", note: "share of calls that ask for the same again", format: percent },
            ({ groups }) => [{ name: "repeated", tone: "first", values: each(groups, (group) => group.repeated) }],
        ),
        of(
            { title: "Latency of calls", note: "as the trainer waited", format: milliseconds, logarithmic: true },
            ({ groups }) => [
                { name: "median", tone: "first", values: each(groups, (group) => group.median) },
                {
                    name: "slowest of a rollout, 90th percentile",
                    tone: "second",
                    values: each(groups, (group) => group.slow),
                },
            ],
        ),
        of({ title: "Output length", note: "characters the model saw" }, ({ groups }) => [
            { name: "per call", tone: "first", values: each(groups, (group) => group.shown) },
            { name: "per rollout", tone: "second", values: each(groups, (group) => group.shownEach) },
        ]),
        of({ title: "Calls by class", note: "all of them the model’s own doing", kind: "bars" }, ({ groups }) =>
            OUTCOMES.map((word) => ({
                name: plain(word),
                tone: word,
                values: each(groups, (group) => group.outcomes[word] ?? 0),
            })),
        ),
        of(
            { title: "Scores by item", note: "those without spread teach nothing", nothing: UNGRADED },
            ({ items }) => [spread("score", items)],
            ({ items }) => items.map((item) => item.name),
        ),
    ];
}

const spread = (name, found) => ({
    name,
    tone: "score",
    values: found.map((one) => one?.mean ?? null),
    low: found.map((one) => one?.low ?? null),
    high: found.map((one) => one?.high ?? null),
});
