// The latest runs with their figures.

import { part, read } from "./api.js";
import { h, put } from "./dom.js";
import { Level } from "./level.js";
import { drawList } from "./list.js";
import { every } from "./live.js";
import { empty, failure, loading } from "./states.js";
import { score } from "./verdict.js";
import { ago, count, moment, percent } from "./words.js";

const SECONDS = 5;

export function show(root, { signal }) {
    const table = h("div", { class: "scroll" }, loading());
    put(root, h("div", { class: "head" }, h("h1", {}, "Runs")), table);
    every(
        SECONDS,
        async () => {
            const found = await read("runs", { query: { limit: 200 }, signal });
            draw(table, found.runs);
        },
        { signal, failed: (error) => table.querySelector("table") || put(table, failure(error)) },
    );
}

const COLUMNS = ["Run", "Verdicts", "Rollouts", "Running", "Calls", "Masked", "Mean score", "Last"];

function draw(table, runs) {
    if (!runs.length) {
        put(
            table,
            empty(
                "No runs yet",
                "A run is the rollouts of one training job: its name is part of the trainer’s address, or of each call.",
            ),
        );
        return;
    }
    drawList(table, COLUMNS, 2, runs.map(row));
}

function row(run) {
    const masked = run.verdicts.masked ?? 0;
    const judged = masked + (run.verdicts.trainable ?? 0);
    return h(
        "tr",
        {},
        h("th", { scope: "row" }, h("a", { class: "id", href: `#/runs/${part(run.run)}` }, run.run)),
        h("td", { "data-label": "Verdicts" }, split(run)),
        h("td", { "data-label": "Rollouts", class: "number" }, count(run.rollouts)),
        h("td", { "data-label": "Running", class: "number" }, count(run.active)),
        h("td", { "data-label": "Calls", class: "number" }, count(run.calls)),
        h(
            "td",
            { "data-label": "Masked", class: "number" },
            judged ? `${count(masked)} (${percent(masked / judged)})` : count(masked),
        ),
        h(
            "td",
            {
                "data-label": "Mean score",
                class: (run.mean_score ?? null) === null ? "number faint" : "number",
            },
            score(run.mean_score),
        ),
        h("td", { "data-label": "Last", class: "number", title: moment(run.last_at) }, ago(run.last_at)),
    );
}

/** A bar of all rollouts by how they stand. */
function split(run) {
    const words = ["trainable", "masked", "abandoned", "running"];
    const values = words.map((word) => (word === "running" ? run.active : (run.verdicts[word] ?? 0)));
    const told = words.map((word, index) => `${values[index]} ${word}`).join(", ");
    const bar = new Level(words, { class: "level slim", role: "img", "aria-label": told });
    bar.update(values);
    return bar.element;
}
