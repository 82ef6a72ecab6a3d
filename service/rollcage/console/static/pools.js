// The pools of all environments, as they fill and empty.

import { Chart } from "./chart.js";
import { h, put } from "./dom.js";
import { Level } from "./level.js";
import { onLevels } from "./levels.js";
import { empty, failure, loading } from "./states.js";
import { clock, count, plural } from "./words.js";

const PARTS = [
    { name: "claimed", tone: "claimed", of: (pool) => pool.claimed },
    { name: "ready", tone: "ready", of: (pool) => pool.ready + pool.set_aside },
    { name: "starting", tone: "starting", of: (pool) => pool.starting },
];
const QUEUED = { name: "queued", tone: "queued", of: (pool) => pool.waiting };

export function show(root, { signal }) {
    const cards = new Map();
    const sum = h("p", { class: "faint", id: "pools-sum" });
    const notice = h(
        "p",
        { class: "notice", role: "status", hidden: true },
        "No controller has been heard of for a while: nothing fills the pools, and what is starting is not known.",
    );
    const list = h("div", { class: "pools" }, loading());
    put(root, h("div", { class: "head" }, h("h1", {}, "Pools"), sum), notice, list);
    onLevels(({ latest, refusal, past }) => {
        if (!latest) {
            put(list, failure(refusal));
            return;
        }
        notice.hidden = latest.controller_heard;
        put(sum, total(latest.pools));
        if (!latest.pools.length) {
            put(list, empty("No environments", "As soon as an environment is there, its pool shows up here."));
            return;
        }
        const wanted = latest.pools.map((pool) => {
            if (!cards.has(pool.environment)) cards.set(pool.environment, card(pool.environment));
            const one = cards.get(pool.environment);
            one.update(pool, past);
            return one.element;
        });
        // Only when the set changed: moving an element would take the focus from what is in it.
        if (wanted.length !== list.children.length || wanted.some((element, index) => list.children[index] !== element))
            put(list, wanted);
    }, signal);
}

function total(pools) {
    const said = [...PARTS, QUEUED].map((part) => {
        const all = pools.map(part.of);
        return `${all.includes(null) ? "–" : count(all.reduce((sum, value) => sum + value, 0))} ${part.name}`;
    });
    return [plural(pools.length, "environment"), ...said].join(", ");
}

function card(environment) {
    const figures = h("dl", { class: "figures" });
    const bar = new Level(
        PARTS.map((part) => part.tone),
        { "aria-hidden": "true" },
    );
    const extra = h("p", { class: "faint extra" });
    const chart = new Chart({ title: "Since this page was opened", height: 112, whole: true });
    const element = h(
        "section",
        { class: "card pool", "aria-label": environment, "data-environment": environment },
        h("div", { class: "now" }, h("h2", {}, environment), figures, bar.element, extra),
        chart.element,
    );
    return {
        element,
        update(pool, past) {
            put(
                figures,
                figure("wanted", pool.wanted, "wanted"),
                figure("ready", pool.ready + pool.set_aside, "ready"),
                figure("starting", pool.starting, "starting"),
                figure("claimed", pool.claimed, "claimed"),
                figure("queued", pool.waiting, "queued"),
            );
            const missing = Math.max(0, pool.wanted - pool.ready - (pool.starting ?? 0));
            bar.update(
                PARTS.map((part) => part.of(pool) ?? 0),
                missing,
            );
            put(extra, besides(pool));
            const there = past.filter((one) => one.pools.has(environment));
            chart.update({
                labels: there.map((one) => clock(one.at)),
                series: [...PARTS, QUEUED].map((part) => ({
                    ...part,
                    values: there.map((one) => part.of(one.pools.get(environment))),
                })),
            });
        },
    };
}

const figure = (name, value, tone) =>
    h(
        "div",
        { class: tone === "queued" && value ? "alarm" : null },
        h("dt", {}, h("i", { class: `swatch tone-${tone}` }), name),
        h("dd", { "data-figure": name }, count(value)),
    );

function besides(pool) {
    const said = [`at most ${count(pool.most)}`];
    if (pool.set_aside) said.push(`${count(pool.set_aside)} of the ready ones set aside`);
    if (pool.reserved) said.push(`${count(pool.reserved)} reserved`);
    if (pool.spent) said.push(`${count(pool.spent)} being deleted`);
    return said.join(", ");
}
