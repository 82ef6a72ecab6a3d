// A run's groups as a table, for those who want the numbers or cannot see the plots.

import { h } from "./dom.js";
import { score } from "./verdict.js";
import { count, milliseconds, percent, short } from "./words.js";

const known = (value, say) => (value === null ? "–" : say(value));

const COLUMNS = [
    ["Step", (group) => count(group.number)],
    ["Rollouts", (group) => count(group.rollouts)],
    ["Trainable", (group) => count(group.verdicts.trainable ?? 0)],
    ["Masked", (group) => count(group.verdicts.masked ?? 0)],
    ["Score", (group) => score(group.score?.mean)],
    ["Calls per rollout", (group) => short(group.calls)],
    ["Repeated", (group) => known(group.repeated, percent)],
    ["Median latency", (group) => milliseconds(group.median)],
    ["Characters per call", (group) => known(group.shown, short)],
];

/** The table, folded unless *open*. */
export function figures(groups, open) {
    const head = COLUMNS.map(([name]) => h("th", { scope: "col", class: "number" }, name));
    const row = (group) =>
        h(
            "tr",
            {},
            COLUMNS.map(([, say]) => h("td", { class: "number" }, say(group))),
        );
    const table = h("table", { class: "plain" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, groups.map(row)));
    return h("details", { open }, h("summary", {}, "The figures as a table"), h("div", { class: "scroll" }, table));
}
