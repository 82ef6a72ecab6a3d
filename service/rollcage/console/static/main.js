// Which view is shown, by the address after "#"; signing in and out.

import { Refused, forget, read, remember, token } from "./api.js";
import { h, put } from "./dom.js";
import { onWord } from "./live.js";
import { watch } from "./levels.js";
import * as pools from "./pools.js";
import * as rollout from "./rollout.js";
import * as rollouts from "./rollouts.js";
import * as run from "./run.js";
import * as runs from "./runs.js";
import { plain } from "./words.js";

const main = document.getElementById("main");
const top = document.getElementById("top");
const pulse = document.getElementById("pulse");

// Each shows itself in an element until its signal says that another one is looked at.
const LISTS = { pools, rollouts, runs };
const ONES = { rollouts: rollout, runs: run };

let shown = new AbortController();
let watching = new AbortController();

/** Read an address: "#/rollouts/R?call=3" is the view "rollouts", the name "R" and the query. */
function address() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [view, name] = path.split("/");
    return { view: view in LISTS ? view : "pools", name: decoded(name), query: new URLSearchParams(query) };
}

function decoded(text) {
    try {
        return text ? decodeURIComponent(text) : "";
    } catch {
        return "";
    }
}

function show() {
    shown.abort();
    shown = new AbortController();
    if (!token()) {
        ask("");
        return;
    }
    const { view, name, query } = address();
    top.hidden = false;
    for (const link of document.querySelectorAll("#nav a")) {
        if (link.dataset.view === view) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
    }
    document.title = `${name || view[0].toUpperCase() + view.slice(1)} · Rollcage`;
    const chosen = name && view in ONES ? ONES[view] : LISTS[view];
    const root = h("div", { class: `view view-${view}` });
    put(main, root);
    chosen.show(root, { name, query, signal: shown.signal });
}

function ask(message) {
    watching.abort();
    top.hidden = true;
    document.title = "Rollcage";
    const field = h("input", {
        type: "password",
        id: "token",
        required: true,
        autocomplete: "off",
        spellcheck: "false",
        "aria-describedby": "why",
    });
    const button = h("button", { type: "submit" }, "Open");
    const said = h("p", { class: "wrong", role: "alert" }, message);
    async function enter(event) {
        event.preventDefault();
        button.disabled = true;
        remember(field.value.trim());
        try {
            await read("environments");
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            forget();
            button.disabled = false;
            put(said, error.status === 401 ? "This token is not known here." : error.message);
            field.select();
            return;
        }
        begin();
    }
    put(
        main,
        h(
            "form",
            { class: "door", onsubmit: enter },
            h("img", { src: "icon.svg", alt: "", width: 40, height: 40 }),
            h("h1", {}, "Rollcage"),
            h("label", { for: "token" }, "Token"),
            field,
            button,
            said,
            h(
                "p",
                { class: "faint", id: "why" },
                "A tenant’s token, as its trainer uses it. It stays in this tab and is forgotten when the tab is closed.",
            ),
        ),
    );
    field.focus();
}

function begin() {
    watching.abort();
    watching = new AbortController();
    watch(watching.signal);
    show();
}

function leave(message) {
    forget();
    shown.abort();
    ask(message);
}

onWord((error) => {
    if (error?.status === 401) {
        leave("This token is not known any more.");
        return;
    }
    const state = error && (error.status === 0 || error.status >= 500) ? "away" : "live";
    if (pulse.dataset.state === state) return;
    pulse.dataset.state = state;
    put(pulse, state === "live" ? "Live" : `${error.status ? plain(error.code) : "No answer"}, trying again`);
});

document.getElementById("leave").addEventListener("click", () => leave(""));
document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
});
window.addEventListener("hashchange", () => {
    show();
    window.scrollTo(0, 0);
});
if (token()) begin();
else ask("");
