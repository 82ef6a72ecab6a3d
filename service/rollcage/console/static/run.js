// One run: whether its step is safe to train on, and what training teams look at to see whether it learns.

import { part, read } from "./api.js";
import { h, put, renew } from "./dom.js";
import { figures } from "./figures.js";
import { byItem, grouped, usual } from "./groups.js";
import { every } from "./live.js";
import { plots } from "./plots.js";
import { failure, loading } from "./states.js";
import { badge, score } from "./verdict.js";
import { count, percent, plain, plural, short } from "./words.js";

const SECONDS = 15;
// Small, so that no trainer waits behind one of them.
const PAGE = 100;
// Enough for some steps; the whole of a long run is for a report.
const MOST = 2000;

const REASONS = {
    many_masked: "more than every twentieth rollout was lost to the infrastructure",
    too_many_masked:
        "more than every fourth rollout was lost to the infrastructure, so this is no sample of what the model does",
    store_recovering: "the record is being restored after a loss of Redis",
};

export function show(root, { name, query, signal }) {
    const head = h("div", {}, loading());
    const body = h("div", {});
    put(root, head, body);
    const drawn = plots();
    const extent = h("p", { class: "faint" });
    const ended = h("section", { class: "chart" });
    const beneath = h("div", {});
    const size = Math.max(0, Math.floor(Number(query.get("step"))) || 0);
    const over = h("div", { class: "over" }, sizer(name, size), extent);
    every(
        SECONDS,
        async () => {
            const [health, found] = await Promise.all([
                read(`runs/${part(name)}/health`, { signal }),
                latest(name, signal),
            ]);
            const before = found.more ? Math.max(0, health.rollouts - found.rollouts.length) : 0;
            const groups = grouped(found.rollouts, size || usual(found.rollouts.length), before);
            renew(head, top(health, found.rollouts));
            if (!body.firstChild)
                put(
                    body,
                    over,
                    h(
                        "div",
                        { class: "plots" },
                        drawn.map((one) => one.element),
                        ended,
                    ),
                    beneath,
                );
            put(extent, told(found, health, groups, size));
            for (const one of drawn) one.update({ groups, items: byItem(found.rollouts) });
            renew(ended, causes(health));
            renew(beneath, figures(groups, Boolean(beneath.querySelector("details")?.open)));
        },
        { signal, failed: (error) => head.querySelector("h1") || put(head, failure(error)) },
    );
}

async function latest(name, signal) {
    const rollouts = [];
    let cursor = null;
    do {
        const page = await read(`runs/${part(name)}/rollouts`, { query: { cursor, limit: PAGE }, signal });
        rollouts.push(...page.rollouts);
        cursor = page.cursor;
    } while (cursor && rollouts.length < MOST);
    return { rollouts, more: cursor !== null };
}

function top(health, rollouts) {
    const graded = rollouts.map((one) => one.score ?? null).filter((value) => value !== null);
    const mean = graded.length ? graded.reduce((sum, value) => sum + value, 0) / graded.length : null;
    const tiles = [
        ["Rollouts", count(health.rollouts)],
        ["Running", count(health.active)],
        ["Calls", count(health.calls)],
        ["Calls per rollout", health.rollouts ? short(health.calls / health.rollouts) : "–"],
        ["Masked", `${count(health.masked)} (${percent(health.masked_share)})`],
        ["Mean score", score(mean)],
    ];
    return [
        h("p", { class: "path" }, h("a", { href: "#/runs" }, "Runs"), " / "),
        h(
            "div",
            { class: "head" },
            h("h1", { class: "id" }, health.run),
            badge(health.advice),
            h("a", { class: "button", href: `#/rollouts?${new URLSearchParams({ run: health.run })}` }, "Its rollouts"),
        ),
        h(
            "p",
            { class: "advice" },
            health.reasons.length
                ? `${plain(health.advice)}: ${health.reasons.map((reason) => REASONS[reason] ?? plain(reason)).join("; ")}.`
                : "The infrastructure gives no reason not to train on this.",
        ),
        h(
            "dl",
            { class: "facts tiles" },
            tiles.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
        ),
    ];
}

function sizer(name, size) {
    const field = h("input", {
        type: "number",
        id: "step",
        min: "1",
        max: String(MOST),
        step: "1",
        placeholder: "auto",
        value: size || null,
    });
    const go = (event) => {
        event.preventDefault();
        location.hash = `#/runs/${part(name)}${field.value ? `?step=${Number(field.value)}` : ""}`;
    };
    return h(
        "form",
        { class: "sizer", onsubmit: go },
        h("label", { for: "step" }, "Rollouts per step"),
        field,
        h("button", { type: "submit", class: "quiet" }, "Apply"),
    );
}

function told(found, health, groups, size) {
    const which = found.more
        ? `the newest ${count(found.rollouts.length)} of ${count(health.rollouts)} rollouts`
        : plural(found.rollouts.length, "rollout");
    const each = groups.length ? `, ${plural(groups.length, "group")} of ${count(groups.at(0).rollouts)}` : "";
    return `${which}${each}, in the order in which they began${size ? "" : "; give your batch size to see steps"}`;
}

function causes(health) {
    const found = Object.entries(health.causes).sort(([, a], [, b]) => b - a);
    const row = ([cause, number]) =>
        h("tr", {}, h("th", { scope: "row" }, plain(cause)), h("td", { class: "number" }, count(number)));
    return [
        h("h2", {}, "Why rollouts ended"),
        found.length
            ? h("table", { class: "plain" }, h("tbody", {}, found.map(row)))
            : h("p", { class: "faint" }, "None has ended yet."),
    ];
}
