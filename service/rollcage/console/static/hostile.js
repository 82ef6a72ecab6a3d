// Show what a model or its tools wrote, as it is: nothing in it is obeyed, and what would not be seen is marked.

import { h, put } from "./dom.js";
import { count, pieces } from "./words.js";

// More than a screen can show, less than makes a browser slow.
const SHOWN = 20_000;

/** A block of text; a very long one is opened on demand. */
export function block(text, { label, kind = "output" } = {}) {
    const body = h("pre", { class: `text ${kind}`, tabindex: "0", role: "region", "aria-label": label });
    const draw = (shown) =>
        put(
            body,
            pieces(shown).map((piece) =>
                piece.mark ? h("span", { class: "mark", title: piece.name }, piece.mark) : piece.text,
            ),
        );
    if (text.length <= SHOWN) {
        draw(text);
        return body;
    }
    draw(text.slice(0, SHOWN));
    const more = h(
        "button",
        {
            type: "button",
            class: "quiet more",
            onclick: () => {
                draw(text);
                more.remove();
                body.focus();
            },
        },
        `Show all ${count(text.length)} characters`,
    );
    return h("div", {}, body, more);
}

/** What a call was given: each argument by its name, or whatever else it was. */
export function given(value) {
    const named = value !== null && typeof value === "object" && !Array.isArray(value);
    if (!named)
        return block(typeof value === "string" ? value : JSON.stringify(value, null, 2), {
            label: "Arguments",
            kind: "asked",
        });
    const pairs = Object.entries(value);
    if (!pairs.length) return h("p", { class: "faint" }, "no arguments");
    return listed(pairs, "Argument");
}

/** Names with what they stand for, one below the other. */
export const listed = (pairs, what) =>
    h(
        "dl",
        { class: "given" },
        pairs.map(([name, one]) =>
            h(
                "div",
                {},
                h("dt", {}, visible(name)),
                h(
                    "dd",
                    {},
                    block(typeof one === "string" ? one : JSON.stringify(one, null, 2), {
                        label: `${what} ${visible(name)}`,
                        kind: "asked",
                    }),
                ),
            ),
        ),
    );

/** A short text on one line, with what would not be seen spelled out. */
export const visible = (text) =>
    pieces(String(text))
        .map((piece) => piece.mark ?? piece.text)
        .join("");
