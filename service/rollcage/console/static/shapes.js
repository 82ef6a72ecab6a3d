// What a plot is drawn of: grid, lines with bands, stacked bars. Colours come from the style sheet, by tone.

import { s } from "./dom.js";

/** Lines across, with what they stand for beside them. */
export function grid(scale, { left, right, format }) {
    return scale.ticks.map((tick) => [
        s("line", { class: "grid", x1: left, x2: right, y1: scale.y(tick), y2: scale.y(tick) }),
        label(format(tick), { x: left - 6, y: scale.y(tick) + 4, end: true }),
    ]);
}

export function label(text, { x, y, end = false }) {
    return s("text", { class: "tick", x, y, "text-anchor": end ? "end" : null }, text);
}

/** A line that breaks where there is no value, with a band if it has *low* and *high*. */
export function line(one, places, scale) {
    const there = one.values.flatMap((value, index) => ((value ?? null) === null ? [] : [index]));
    const point = (index, value) => `${places.x(index).toFixed(1)} ${scale.y(value).toFixed(1)}`;
    const begins = (index) => (one.values[index - 1] ?? null) === null;
    const ends = (index) => (one.values[index + 1] ?? null) === null;
    const path = there.map((index) => `${begins(index) ? "M" : "L"}${point(index, one.values[index])}`).join("");
    // A point with nobody beside it would not be seen as a line.
    const lonely = there.filter((index) => begins(index) && ends(index));
    const dot = (index) => ({ cx: places.x(index), cy: scale.y(one.values[index]), r: 2.5 });
    return [
        one.low && s("polygon", { class: `band tone-${one.tone}`, points: outline(one, there, point) }),
        s("path", { class: `line tone-${one.tone}`, d: path }),
        lonely.map((index) => s("circle", { class: `dot tone-${one.tone}`, ...dot(index) })),
    ];
}

function outline(one, there, point) {
    const up = there.map((index) => point(index, one.high[index]));
    const down = there.toReversed().map((index) => point(index, one.low[index]));
    return [...up, ...down].join(" ");
}

/** One bar per group, the series on top of each other. */
export function stacks(series, number, places, scale) {
    const width = Math.max(1, places.width - (places.width > 6 ? 1.5 : places.width > 3 ? 0.5 : 0));
    return Array.from({ length: number }, (_, index) => {
        let base = 0;
        return series.map((one) => {
            const value = one.values[index] ?? 0;
            if (!value) return null;
            const [y, foot] = [scale.y(base + value), scale.y(base)];
            base += value;
            return s("rect", { class: `bar tone-${one.tone}`, x: places.x(index), y, width, height: foot - y });
        });
    });
}
