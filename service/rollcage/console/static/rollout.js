// One rollout: how it stands and why, and each call as the model saw it, with what was measured.

import { Refused, part, read } from "./api.js";
import { call } from "./call.js";
import { h, put } from "./dom.js";
import { evidence } from "./evidence.js";
import { visible } from "./hostile.js";
import { every } from "./live.js";
import { empty, failure, loading } from "./states.js";
import { outcome, score, verdict } from "./verdict.js";
import { between, count, milliseconds, moment, plain, plural } from "./words.js";

const PAGE = 50;
const SECONDS = 3;

export function show(root, { name, query, signal }) {
    const path = `rollouts/${part(name)}`;
    const head = h("div", {}, loading());
    const outline = h("ol", { class: "outline" });
    const calls = h("div", { class: "calls" });
    const more = h("button", { type: "button", hidden: true }, "Load more calls");
    put(
        root,
        head,
        h(
            "div",
            { class: "trajectory" },
            h("nav", { "aria-label": "Calls", class: "rail" }, outline),
            h("div", {}, calls, more),
        ),
    );

    const steps = [];
    let whole = false;
    let wanted = Number(query.get("call")) || 0;
    let over = false;
    let loaded = false;
    let told = "";

    async function load() {
        // Calls without a result are read again, for they may have one by now.
        const open = steps.findIndex((step) => !step.finished_at);
        const from = open < 0 ? steps.length : open;
        const page = await read(`${path}/trajectory`, {
            query: { cursor: from || null, limit: PAGE },
            signal,
        });
        page.steps.forEach((step, index) => place(steps, from + index, step, calls, outline));
        whole = page.cursor === null;
        loaded = true;
        more.hidden = whole;
        if (!steps.length)
            put(calls, empty("No calls", over ? "The rollout ended without one." : "None has been recorded yet."));
        const target = wanted && document.getElementById(`call-${wanted}`);
        if (target) {
            wanted = 0;
            target.scrollIntoView();
            target.focus({ preventScroll: true });
        }
    }

    more.addEventListener("click", () =>
        load().catch((error) => error.name === "AbortError" || put(calls, failure(error))),
    );
    every(
        SECONDS,
        async () => {
            const [one, found] = await Promise.all([read(path, { signal }), read(`${path}/verdict`, { signal })]);
            const graded = (one.score ?? null) === null ? null : await grade(path, signal);
            const news = JSON.stringify([one, found.evidence, graded]);
            // Drawn only when it changed: somebody may be reading the evidence.
            if (news !== told) put(head, ...top(one, found.evidence, graded));
            told = news;
            const settled = over && steps.every((step) => step.finished_at);
            over = one.state === "ended";
            if (!loaded || (whole && !settled)) await load();
        },
        { signal, failed: (error) => head.querySelector("h1") || put(head, failure(error)) },
    );
}

/** What the score is made of; without it, the score itself has to do. */
async function grade(path, signal) {
    try {
        return await read(`${path}/score`, { signal });
    } catch (error) {
        if (error instanceof Refused) return null;
        throw error;
    }
}

function place(steps, index, step, calls, outline) {
    const known = steps[index];
    if (known && known.finished_at === step.finished_at) return;
    steps[index] = step;
    if (index === 0 && !known) {
        put(calls);
        put(outline);
    }
    const [article, entry] = [call(step), line(step)];
    if (known) {
        calls.children[index].replaceWith(article);
        outline.children[index].replaceWith(entry);
    } else {
        calls.append(article);
        outline.append(entry);
    }
}

function top(one, found, graded) {
    const facts = [
        ["Run", one.run ? h("a", { class: "id", href: `#/runs/${part(one.run)}` }, one.run) : "–"],
        ["Environment", one.environment],
        ["Score", score(one.score)],
        ["Calls", count(one.calls)],
        ["Begun (UTC)", moment(one.begun_at).replace(" UTC", "")],
        ["Ended", one.ended_at ? `after ${milliseconds(between(one.begun_at ?? one.ended_at, one.ended_at))}` : "–"],
        ["Sandbox", one.sandbox ? one.sandbox.name : "–"],
        ["Node", one.sandbox?.node || "–"],
        ["Said by", one.verdict ? plain(one.verdict.by) : "–"],
    ];
    if (one.item) facts.splice(3, 0, ["Item", one.item]);
    for (const [name, value] of Object.entries(graded?.parts ?? {}))
        facts.push([`Score: ${visible(name)}`, score(value)]);
    if (graded?.notes.length) facts.push(["Grader’s notes", graded.notes.join("; ")]);
    if (one.placements > 1) facts.push(["Moved", `${plural(one.placements - 1, "time")}, before any call`]);
    return [
        h("p", { class: "path" }, h("a", { href: "#/rollouts" }, "Rollouts"), " / "),
        h("div", { class: "head" }, h("h1", { class: "id" }, one.rollout), verdict(one)),
        h(
            "dl",
            { class: "facts" },
            facts.map(([name, value]) =>
                h("div", {}, h("dt", {}, name), h("dd", {}, typeof value === "string" ? visible(value) : value)),
            ),
        ),
        evidence(found, one.verdict),
    ];
}

const line = (step) =>
    h(
        "li",
        {},
        h(
            "button",
            { type: "button", class: "jump", onclick: () => jump(step.number) },
            h("span", { class: "n" }, step.number),
            h("span", { class: "tool" }, visible(step.tool)),
            outcome(step),
        ),
    );

function jump(number) {
    const target = document.getElementById(`call-${number}`);
    target.scrollIntoView();
    target.focus({ preventScroll: true });
    const [path] = location.hash.split("?");
    // Not a new view: only what a copied address points to.
    history.replaceState(null, "", `${path}?call=${number}`);
}
