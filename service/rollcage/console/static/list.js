// A table of many things, drawn anew again and again: whoever stands on a link in it stays there.

import { h, put } from "./dom.js";

/** Draw rows under these columns; from *firstNumber* on they hold numbers. */
export function drawList(table, columns, firstNumber, rows) {
    const focused = table.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const heads = columns.map((name, index) =>
        h("th", { scope: "col", class: index >= firstNumber ? "number" : null }, name),
    );
    put(table, h("table", { class: "list" }, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)));
    if (focused)
        [...table.querySelectorAll("a")]
            .find((one) => one.getAttribute("href") === focused)
            ?.focus({ preventScroll: true });
}
