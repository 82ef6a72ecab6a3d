// Small plots: lines with an optional band, or stacked bars, over groups from left to right.
//
// The legend tells the values where the pointer is, or the arrow keys, else of the last group.

import { h, put, s } from "./dom.js";
import { across, upward } from "./scale.js";
import { grid, label, line, stacks } from "./shapes.js";
import { short } from "./words.js";

const LEFT = 50;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 20;
const LEAST = 80;

/**
 * A plot that can be given new data: labels, and series [{name, tone, values}] with null where there is nothing.
 * "kind" is "lines" or "bars", "whole" is for what comes in whole numbers; a line with *low* and *high* gets a band around it.
 */
export class Chart {
    #options;
    #data = { labels: [], series: [] };
    #at = null;
    #width = 0;

    constructor({ title, note = "", nothing = "nothing yet", ...options }) {
        this.#options = {
            title,
            nothing,
            kind: "lines",
            height: 168,
            format: short,
            logarithmic: false,
            whole: false,
            ...options,
        };
        this.plot = s("svg", { class: "plot", height: this.#options.height, role: "img", tabindex: "0" });
        this.legend = h("ul", { class: "legend" });
        const caption = h("figcaption", {}, h("strong", {}, title), note && h("span", { class: "faint" }, note));
        this.element = h("figure", { class: "chart" }, caption, this.plot, this.legend);
        this.plot.addEventListener("pointermove", (event) => this.#point(event.offsetX));
        this.plot.addEventListener("pointerleave", () => this.#choose(null));
        this.plot.addEventListener("blur", () => this.#choose(null));
        this.plot.addEventListener("keydown", (event) => this.#step(event));
        new ResizeObserver(([entry]) => {
            const width = Math.round(entry.contentRect.width);
            if (width === this.#width) return;
            this.#width = width;
            this.#draw();
        }).observe(this.plot);
    }

    update(data) {
        this.#data = data;
        if (this.#at >= data.labels.length) this.#at = null;
        this.#draw();
    }

    get #bars() {
        return this.#options.kind === "bars";
    }

    get #places() {
        return across(this.#data.labels.length, { left: LEFT, inner: this.#width - LEFT - RIGHT, bars: this.#bars });
    }

    /** All values that the plot must have room for. */
    get #known() {
        const { series } = this.#data;
        const sums = () =>
            this.#data.labels.map((_, index) => series.reduce((sum, one) => sum + (one.values[index] ?? 0), 0));
        const all = this.#bars
            ? sums()
            : series.flatMap((one) => [...one.values, ...(one.low ?? []), ...(one.high ?? [])]);
        return all.filter((value) => (value ?? null) !== null);
    }

    #point(x) {
        const number = this.#data.labels.length;
        if (!number) return;
        const distance = (index) => Math.abs(this.#places.x(index) + this.#places.width / 2 - x);
        this.#choose(
            Array.from({ length: number }, (_, index) => index).reduce((a, b) => (distance(b) < distance(a) ? b : a)),
        );
    }

    #step(event) {
        const last = this.#data.labels.length - 1;
        const now = this.#at ?? last;
        const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, Escape: null }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        this.#choose(to === null ? null : Math.min(last, Math.max(0, to)));
    }

    #choose(at) {
        if (at === this.#at) return;
        this.#at = at;
        this.#draw();
    }

    #draw() {
        const known = this.#known;
        this.#tell(known.length > 0);
        if (this.#width < LEAST) return;
        const { height, nothing, logarithmic, whole, format } = this.#options;
        if (!known.length) {
            put(
                this.plot,
                s("text", { class: "nothing", x: this.#width / 2, y: height / 2, "text-anchor": "middle" }, nothing),
            );
            return;
        }
        const { labels, series } = this.#data;
        const scale = upward(known, { top: TOP, height: height - TOP - BOTTOM, logarithmic, whole });
        const places = this.#places;
        const right = this.#width - RIGHT;
        const middle = this.#at === null ? 0 : places.x(this.#at) + places.width / 2;
        put(
            this.plot,
            grid(scale, { left: LEFT, right, format }),
            this.#bars ? stacks(series, labels.length, places, scale) : series.map((one) => line(one, places, scale)),
            label(labels[0], { x: LEFT, y: height - 5 }),
            labels.length > 1 && label(labels.at(-1), { x: right, y: height - 5, end: true }),
            this.#at !== null && s("line", { class: "cursor", x1: middle, x2: middle, y1: TOP, y2: height - BOTTOM }),
        );
    }

    #tell(anything) {
        const { labels, series } = this.#data;
        const { title, nothing, format } = this.#options;
        const at = this.#at ?? labels.length - 1;
        const said = (one) => {
            const value = one.values[at] ?? null;
            if (value === null) return "–";
            return one.low ? `${format(value)} (${format(one.low[at])} to ${format(one.high[at])})` : format(value);
        };
        const entry = (one) =>
            h("li", {}, h("i", { class: `swatch tone-${one.tone}` }), `${one.name} `, h("b", {}, said(one)));
        put(this.legend, anything && series.map(entry), this.#at !== null && h("li", { class: "faint" }, labels[at]));
        const told = anything
            ? `${labels[at]}: ${series.map((one) => `${one.name} ${said(one)}`).join(", ")}`
            : nothing;
        this.plot.setAttribute("aria-label", `${title}. ${told}`);
    }
}
