// A rollout's or a call's outcome as a badge.

import { h } from "./dom.js";
import { plain } from "./words.js";

const STATES = { bound: "running", waiting: "queued", asked: "queued", ended: "ended" };

/** What a rollout came to, or how far it is: [word, tone]. */
export function standing(rollout) {
    if (rollout.verdict) return [rollout.verdict.word, rollout.verdict.word];
    const state = STATES[rollout.state] ?? rollout.state;
    return [state, state];
}

export const badge = (word, tone = word) => h("span", { class: `badge tone-${safe(tone)}` }, plain(word));

export function verdict(rollout) {
    const cause = rollout.verdict?.cause;
    return h(
        "span",
        { class: "verdict" },
        badge(...standing(rollout)),
        cause ? h("span", { class: "cause" }, plain(cause)) : null,
    );
}

export const outcome = (step) => (step.outcome ? badge(step.outcome) : badge("no result", "running"));

export const score = (value) =>
    value === null || value === undefined ? "not graded" : String(Number(value.toFixed(4)));

// Words come from the record; as a class name only letters of ours will do.
const safe = (word) => String(word).replace(/[^a-z_]/g, "");
