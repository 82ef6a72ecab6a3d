// Put a run's rollouts into groups, in the order in which they began, and add each group up.
//
// The service does not know the trainer's steps; whoever does gives their size. Pure: values in, values out.

const ABOUT = 24;

/** How many rollouts make a group if nobody says: round, and some two dozen groups. */
export function usual(number) {
    const rough = Math.max(1, number / ABOUT);
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
}

/**
 * Add up groups of *size* rollouts, given newest first; the oldest group comes first, the last may not be whole.
 * With *before* older ones that are not given, those at the beginning that make no whole group are left out.
 */
export function grouped(newestFirst, size, before = 0) {
    const skipped = (size - (before % size)) % size;
    const first = (before + skipped) / size + 1;
    const groups = [];
    for (let end = newestFirst.length - skipped; end > 0; end -= size) {
        const rollouts = newestFirst.slice(Math.max(0, end - size), end);
        groups.push({ number: first + groups.length, ...summed(rollouts) });
    }
    return groups;
}

/** The lowest, mean and highest score of each dataset item that was graded, by mean. */
export function byItem(rollouts) {
    const scores = new Map();
    for (const { item, score } of rollouts) {
        if (item && (score ?? null) !== null) scores.set(item, [...(scores.get(item) ?? []), score]);
    }
    const items = [...scores].map(([name, given]) => ({ name, ...range(given) }));
    return items.toSorted((a, b) => a.mean - b.mean);
}

function summed(rollouts) {
    const tallies = rollouts.map((one) => one.tally);
    const called = tallies.filter((one) => one.calls);
    const scores = known(rollouts.map((one) => one.score));
    const calls = sum(tallies.map((one) => one.calls));
    const words = rollouts.map((one) => one.verdict?.word ?? "running");
    return {
        rollouts: rollouts.length,
        begun: rollouts.at(-1).begun_at,
        verdicts: counted(words),
        score: scores.length ? range(scores) : null,
        graded: scores.length,
        calls: mean(tallies.map((one) => one.calls)),
        mostCalls: Math.max(...tallies.map((one) => one.calls)),
        repeated: calls ? sum(tallies.map((one) => one.repeated)) / calls : null,
        median: quantile(known(called.map((one) => one.median_ms)), 0.5),
        slow: quantile(known(called.map((one) => one.slowest_ms)), 0.9),
        shown: calls ? sum(tallies.map((one) => one.shown)) / calls : null,
        shownEach: mean(called.map((one) => one.shown)),
        outcomes: tallies.reduce((all, one) => added(all, one.outcomes), {}),
    };
}

const known = (values) => values.filter((value) => value !== null && value !== undefined);
const sum = (values) => values.reduce((all, value) => all + value, 0);
const mean = (values) => (values.length ? sum(values) / values.length : null);
const range = (scores) => ({ mean: mean(scores), low: Math.min(...scores), high: Math.max(...scores) });
const counted = (words) => words.reduce((all, word) => added(all, { [word]: 1 }), {});

function added(all, more) {
    const both = { ...all };
    for (const [word, number] of Object.entries(more)) both[word] = (both[word] ?? 0) + number;
    return both;
}

function quantile(values, share) {
    if (!values.length) return null;
    const sorted = values.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}
