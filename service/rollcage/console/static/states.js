// What stands where there is nothing to show: not yet, nothing at all, or something went wrong.

import { h } from "./dom.js";

export const loading = () =>
    h("p", { class: "lone faint", "aria-busy": "true" }, h("span", { class: "spinner" }), "Loading…");

export const empty = (title, ...text) =>
    h("div", { class: "lone" }, h("h2", {}, title), h("p", { class: "faint" }, text));

const TITLES = {
    unreachable: "The gateway does not answer",
    store_unavailable: "Redis does not answer",
    store_recovering: "The record is being restored",
    rollout_unknown: "No such rollout",
    run_unknown: "No such run",
};

const HINTS = {
    unreachable: "It is tried again every few seconds.",
    rollout_unknown: "Nobody has used this id with this token, or its record has expired.",
    run_unknown: "No rollout of this run is on record for this token.",
    tenant_busy: "Too many requests of this tenant are in flight.",
};

export const failure = (error) =>
    h(
        "div",
        { class: "lone", role: "alert" },
        h("h2", {}, TITLES[error.code] ?? "The gateway refused"),
        h("p", { class: "faint" }, HINTS[error.code] ?? error.message),
        h("p", { class: "code" }, error.status ? `${error.status} ${error.code}` : error.code),
    );
