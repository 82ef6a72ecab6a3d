// What a verdict rests on: each fact under its path. It is open where somebody will ask why: at a masked rollout.

import { h } from "./dom.js";
import { listed } from "./hostile.js";

export const evidence = (pieces, verdict) =>
    pieces.length > 0 &&
    h(
        "details",
        { class: "evidence", open: verdict?.word === "masked" },
        h("summary", {}, `Evidence (${pieces.length})`),
        pieces.map((piece, index) =>
            h("section", { class: "card", "aria-label": `Evidence ${index + 1}` }, listed(flat(piece), "Fact")),
        ),
    );

function flat(value, path = "") {
    if (value === null || value === "") return [];
    if (typeof value !== "object" || Array.isArray(value)) return [[path, value]];
    return Object.entries(value).flatMap(([name, one]) => flat(one, path ? `${path}.${name}` : name));
}
