// From values to places: axes with round steps. Pure.

/** The places that values get, from *top* down over *height*, and the steps to write beside them: {ticks, y}. */
export function upward(values, { top, height, logarithmic, whole }) {
    const [low, high, ticks] = logarithmic ? powers(values) : steps(values, whole);
    const at = logarithmic ? (value) => Math.log10(Math.max(10 ** low, value)) : (value) => value;
    return { ticks, y: (value) => top + height * (1 - (at(value) - low) / (high - low)) };
}

/** The places of so many groups from *left* over *inner*: bars have a width, points of a line have none. */
export function across(number, { left, inner, bars }) {
    const width = bars ? inner / Math.max(1, number) : 0;
    const step = bars ? width : inner / Math.max(1, number - 1);
    // A line's only point is its latest.
    return { width, x: (index) => (!bars && number === 1 ? left + inner : left + step * index) };
}

function powers(values) {
    const low = Math.floor(Math.log10(Math.max(1, Math.min(...values))));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(1, ...values))));
    const step = Math.ceil((high - low) / 4);
    const ticks = [];
    for (let power = low; power <= high; power += step) ticks.push(10 ** power);
    return [low, high, ticks];
}

function steps(values, whole) {
    const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
    const rough = (most > least ? most - least : 1) / 3;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10, 20, 50]
        .map((factor) => Number((factor * power).toPrecision(12)))
        .find((one) => one >= rough * 0.999 && !(whole && one % 1));
    const ticks = [Number((Math.floor(least / step) * step).toPrecision(12))];
    while (ticks.length < 2 || ticks.at(-1) < most - step * 1e-6) {
        ticks.push(Number((ticks[0] + ticks.length * step).toPrecision(12)));
    }
    return [ticks[0], ticks.at(-1), ticks];
}
