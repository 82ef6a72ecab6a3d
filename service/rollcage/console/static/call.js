// One call: what was asked, the text as the model saw it, and what was measured.

import { h } from "./dom.js";
import { block, given, visible } from "./hostile.js";
import { outcome } from "./verdict.js";
import { between, bytes, clock, milliseconds, moment, plural } from "./words.js";

export function call(step) {
    return h(
        "article",
        {
            class: "card call",
            id: `call-${step.number}`,
            tabindex: "-1",
            "aria-label": `Call ${step.number}`,
        },
        h(
            "header",
            {},
            h("span", { class: "n" }, step.number),
            h("h2", {}, visible(step.tool)),
            outcome(step),
            h("span", { class: "callid faint" }, step.call_id),
            h("time", { class: "faint", datetime: step.begun_at, title: moment(step.begun_at) }, clock(step.begun_at)),
        ),
        given(step.arguments),
        step.output === null
            ? h("p", { class: "faint" }, "No result: the call still runs, or what it came to was lost.")
            : step.output === ""
              ? h("p", { class: "faint" }, "The model saw an empty text.")
              : block(step.output, { label: `Output of call ${step.number}, as the model saw it` }),
        h(
            "ul",
            { class: "measured", "aria-label": "Facts" },
            measured(step).map(([name, value, loud]) =>
                h("li", { class: loud ? "loud" : null }, h("span", {}, name), " ", h("b", {}, value)),
            ),
        ),
    );
}

function measured(step) {
    const facts = step.facts ?? {};
    const said = [];
    const add = (name, value, loud = false) =>
        value !== null && value !== undefined && value !== "" && said.push([name, String(value), loud]);
    add("exit code", facts.exit_code, Boolean(facts.exit_code));
    add("signal", facts.signal && visible(facts.signal), true);
    if (facts.timed_out) add("timed out", "yes", true);
    if ("duration_ms" in facts) add("ran", milliseconds(facts.duration_ms));
    add("answered after", step.finished_at && milliseconds(between(step.begun_at, step.finished_at)));
    if (step.output !== null) add("shown", plural([...step.output].length, "character"));
    if (facts.truncated) add("truncated from", bytes(facts.output_bytes), true);
    if (facts.peak_memory_bytes) add("peak memory", bytes(facts.peak_memory_bytes));
    if (facts.oom_kills) add("killed for memory", facts.oom_kills, true);
    if (facts.pressure?.stalled_ms) add("stalled", milliseconds(facts.pressure.stalled_ms));
    return said;
}
