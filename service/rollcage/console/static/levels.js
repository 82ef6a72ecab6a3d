// How the pools stand and stood, for as long as the page is open: asked every two seconds, kept for ten minutes.

import { read } from "./api.js";
import { every } from "./live.js";

const SECONDS = 2;
const KEPT = 300;

const listeners = new Set();
let latest = null;
let refusal = null;
let past = [];

/** Begin to ask, until *signal*. */
export function watch(signal) {
    [latest, refusal, past] = [null, null, []];
    every(
        SECONDS,
        async () => {
            const found = await read("pools", { signal });
            latest = found;
            refusal = null;
            past = [
                ...past,
                { at: new Date(), pools: new Map(found.pools.map((pool) => [pool.environment, pool])) },
            ].slice(-KEPT);
            tell();
        },
        {
            signal,
            failed: (error) => {
                refusal = error;
                tell();
            },
        },
    );
}

/** Call *listener* now, if anything is known, and at every news, until *signal*. */
export function onLevels(listener, signal) {
    listeners.add(listener);
    signal.addEventListener("abort", () => listeners.delete(listener));
    if (latest || refusal) listener({ latest, refusal, past });
}

function tell() {
    for (const listener of listeners) listener({ latest, refusal, past });
}
