// A bar of parts, each in its tone; what is missing to the whole stays empty.

import { h } from "./dom.js";

export class Level {
    constructor(tones, attributes = {}) {
        this.parts = tones.map((tone) => h("i", { class: `fill-${tone}` }));
        this.element = h("div", { class: "level", ...attributes }, this.parts);
    }

    update(values, missing = 0) {
        const whole = Math.max(
            1,
            values.reduce((sum, value) => sum + value, missing),
        );
        // Through the object model: a style attribute would be refused, as every inline style is.
        this.parts.forEach((part, index) => (part.style.width = `${(100 * values[index]) / whole}%`));
    }
}
