// Do something again and again while somebody looks, and say how that goes.

import { Refused } from "./api.js";

const listeners = new Set();

/** Hear how the last question went: null for well, else the Refused. */
export function onWord(listener) {
    listeners.add(listener);
}

function word(error) {
    for (const listener of listeners) listener(error);
}

/**
 * Do *work* now and every *seconds* until *signal*; not while the tab is hidden. What is refused is given to
 * *failed*, and tried again. Returns a function that does the work at once.
 */
export function every(seconds, work, { signal, failed = () => {} }) {
    let timer = 0;
    let number = 0;
    async function turn() {
        clearTimeout(timer);
        const mine = ++number;
        try {
            await work();
            if (!signal.aborted) word(null);
        } catch (error) {
            if (signal.aborted || error.name === "AbortError") return;
            if (!(error instanceof Refused)) throw error;
            word(error);
            failed(error);
        }
        if (!signal.aborted && mine === number && !document.hidden) timer = setTimeout(turn, seconds * 1000);
    }
    document.addEventListener("visibilitychange", () => !document.hidden && turn(), { signal });
    signal.addEventListener("abort", () => clearTimeout(timer));
    turn();
    return turn;
}
