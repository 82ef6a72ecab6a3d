// Figures, times and hostile texts as people read them.

const COUNT = new Intl.NumberFormat("en");

export const count = (value) => (value === null || value === undefined ? "–" : COUNT.format(value));

/** A number short enough for an axis: 950, 1.2k, 3.4M. */
export function short(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return `${trim(value / 1e6)}M`;
    if (size >= 1e3) return `${trim(value / 1e3)}k`;
    return trim(value);
}

const trim = (value) => String(Number(value.toFixed(Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0)));

export const percent = (share) => `${trim(share * 100)} %`;

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function milliseconds(value) {
    if (value === null || value === undefined) return "–";
    if (value < 1000) return `${Math.round(value)} ms`;
    if (value < 60_000) return `${trim(value / 1000)} s`;
    // Rounded once, before it is divided: there is no "1 min 60 s".
    const seconds = Math.round(value / 1000);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    const minutes = Math.round(seconds / 60);
    return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function bytes(value) {
    if (value === null || value === undefined) return "–";
    if (value < 1024) return `${value} B`;
    if (value < 1 << 20) return `${trim(value / 1024)} KiB`;
    return value < 1 << 30 ? `${trim(value / (1 << 20))} MiB` : `${trim(value / (1 << 30))} GiB`;
}

export function ago(text, now = Date.now()) {
    if (!text) return "–";
    const seconds = Math.max(0, Math.round((now - Date.parse(text)) / 1000));
    if (seconds < 60) return `${seconds} s ago`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
    return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}

export const clock = (text) => (text ? new Date(text).toLocaleTimeString("en-GB") : "–");
export const moment = (text) =>
    text
        ? new Date(text)
              .toISOString()
              .replace("T", " ")
              .replace(/\.\d+Z$/, " UTC")
        : "–";
export const between = (from, to) => (from && to ? Date.parse(to) - Date.parse(from) : null);
export const plain = (word) => String(word ?? "").replaceAll("_", " ");

// What a terminal or a bidirectional layout would obey, or nobody would see: controls except tab and
// line feed, soft hyphens, bidi and zero-width characters, invisible fillers, separators, tags, unpaired halves.
const UNSEEN =
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u034F\u061C\u115F\u1160\u17B4\u17B5\u180B-\u180F\u200B-\u200F\u2028-\u202E\u2060-\u206F\u3164\uFE00-\uFE0D\uFEFF\uFFA0\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}]|\p{Surrogate}/gu;

/** Cut a text into plain pieces and marks for what would not be seen: [{text}, {mark, name}, …]. */
export function pieces(text) {
    const found = [];
    let end = 0;
    for (const match of text.matchAll(UNSEEN)) {
        if (match.index > end) found.push({ text: text.slice(end, match.index) });
        found.push(named(match[0].codePointAt(0)));
        end = match.index + match[0].length;
    }
    if (end < text.length) found.push({ text: text.slice(end) });
    return found;
}

// The usual names of those that come most; of all others the number must do.
const NAMES = new Map([
    [0, "NUL"],
    [7, "BEL"],
    [8, "BS"],
    [12, "FF"],
    [13, "CR"],
    [27, "ESC"],
    [127, "DEL"],
]);

function named(point) {
    const name = `U+${point.toString(16).toUpperCase().padStart(4, "0")}`;
    return { mark: NAMES.get(point) ?? name, name };
}
