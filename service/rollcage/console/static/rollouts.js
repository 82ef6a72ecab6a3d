// Rollouts, newest first: by run and by how they stand, a page at a time.

import { part, read } from "./api.js";
import { h, put } from "./dom.js";
import { drawList } from "./list.js";
import { every } from "./live.js";
import { empty, failure, loading } from "./states.js";
import { score, verdict } from "./verdict.js";
import { ago, between, count, milliseconds, moment } from "./words.js";

const PAGE = 50;
const SECONDS = 4;
const LABELS = [
    ["all", "All"],
    ["active", "Running"],
    ["ended", "Ended"],
    ["masked", "Masked"],
];

/** The address of a listing; fields without a value are left out. */
function link(fields) {
    const given = Object.entries(fields).filter(([, value]) => value && value !== "all");
    return given.length ? `#/rollouts?${new URLSearchParams(given)}` : "#/rollouts";
}

export const rolloutLink = (name) => `#/rollouts/${part(name)}`;

export function show(root, { query, signal }) {
    const now = {
        run: query.get("run") ?? "",
        label: query.get("label") ?? "all",
        cursor: query.get("cursor") ?? "",
    };
    // The pages before this one, so that there is a way back: cursors only lead on.
    const before = (query.get("before") ?? "").split(".").filter(Boolean);
    const table = h("div", { class: "scroll" }, loading());
    const pages = h("nav", { class: "pages", "aria-label": "Pages" });
    put(root, h("div", { class: "head" }, h("h1", {}, "Rollouts"), finder()), filters(now, signal), table, pages);
    every(
        // Pages further back do not change by themselves.
        now.cursor ? 30 : SECONDS,
        async () => {
            const page = await read("rollouts", { query: { ...now, limit: PAGE }, signal });
            draw(table, page.rollouts, now);
            put(pages, paging(page, now, before));
        },
        { signal, failed: (error) => table.querySelector("table") || put(table, failure(error)) },
    );
}

const COLUMNS = ["Rollout", "Verdict", "Run", "Environment", "Calls", "Score", "Lasted", "Begun"];

function draw(table, found, now) {
    if (!found.length) {
        const filtered = now.run || now.label !== "all" || now.cursor;
        put(
            table,
            filtered
                ? empty("Nothing here", "No rollout matches. ", h("a", { href: "#/rollouts" }, "Show all"))
                : empty("No rollouts yet", "A rollout begins with its first call; nobody has to announce it."),
        );
        return;
    }
    drawList(table, COLUMNS, 4, found.map(row));
}

function row(one) {
    const lasted = one.begun_at ? between(one.begun_at, one.ended_at ?? new Date().toISOString()) : null;
    return h(
        "tr",
        {},
        h("th", { scope: "row" }, h("a", { class: "id", href: rolloutLink(one.rollout) }, one.rollout)),
        h("td", { "data-label": "Verdict" }, verdict(one)),
        h(
            "td",
            { "data-label": "Run" },
            one.run ? h("a", { class: "id", href: `#/runs/${part(one.run)}` }, one.run) : "–",
        ),
        h("td", { "data-label": "Environment" }, one.environment),
        h("td", { "data-label": "Calls", class: "number" }, count(one.calls)),
        h(
            "td",
            { "data-label": "Score", class: (one.score ?? null) === null ? "number faint" : "number" },
            score(one.score),
        ),
        h("td", { "data-label": "Lasted", class: "number" }, milliseconds(lasted)),
        h("td", { "data-label": "Begun", class: "number", title: moment(one.begun_at) }, ago(one.begun_at)),
    );
}

function filters(now, signal) {
    const labels = h(
        "nav",
        { class: "segments", "aria-label": "Which rollouts" },
        LABELS.map(([label, name]) =>
            h("a", { href: link({ run: now.run, label }), "aria-current": label === now.label ? "true" : null }, name),
        ),
    );
    const runs = h(
        "select",
        { id: "of-run", onchange: () => (location.hash = link({ run: runs.value, label: now.label })) },
        h("option", { value: "" }, "all runs"),
    );
    if (now.run) runs.append(h("option", { value: now.run, selected: true }, now.run));
    read("runs", { query: { limit: 200 }, signal }).then(
        (found) =>
            found.runs
                .filter((one) => one.run !== now.run)
                .forEach((one) => runs.append(h("option", { value: one.run }, one.run))),
        () => {}, // the listing itself says what is wrong
    );
    return h(
        "div",
        { class: "filters" },
        labels,
        h("span", { class: "of" }, h("label", { for: "of-run" }, "of"), runs),
    );
}

function finder() {
    const field = h("input", {
        type: "search",
        id: "find",
        placeholder: "Open by id",
        "aria-label": "Open a rollout by its id",
        spellcheck: "false",
        autocomplete: "off",
    });
    const open = (event) => {
        event.preventDefault();
        if (field.value.trim()) location.hash = rolloutLink(field.value.trim());
    };
    return h("form", { class: "finder", role: "search", onsubmit: open }, field);
}

function paging(page, now, before) {
    const trail = before.join(".");
    return [
        now.cursor
            ? h(
                  "a",
                  {
                      class: "button",
                      href: link({
                          ...now,
                          cursor: before.at(-1) === "0" ? "" : before.at(-1),
                          before: before.slice(0, -1).join("."),
                      }),
                  },
                  "Newer",
              )
            : h("span"),
        page.cursor
            ? h(
                  "a",
                  {
                      class: "button",
                      href: link({
                          ...now,
                          cursor: page.cursor,
                          before: `${trail ? `${trail}.` : ""}${now.cursor || "0"}`,
                      }),
                  },
                  "Older",
              )
            : h("span"),
    ];
}
