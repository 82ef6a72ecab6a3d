// Ask this gateway, with the token that the person gave for this tab. It is kept in the tab's session
// storage and sent as a header; it is never part of an address.

const KEY = "rollcage.token";

export const token = () => sessionStorage.getItem(KEY);
export const remember = (given) => sessionStorage.setItem(KEY, given);
export const forget = () => sessionStorage.removeItem(KEY);

/** What the gateway refused, or that it did not answer (code "unreachable"). */
export class Refused extends Error {
    constructor(status, code, detail) {
        super(detail);
        this.status = status;
        this.code = code;
    }
}

/** Read a resource; *query* fields without a value are left out. Raises Refused; an abort is passed on. */
export async function read(path, { query = {}, signal } = {}) {
    const fields = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
    const search = fields.length ? `?${new URLSearchParams(fields)}` : "";
    let answer;
    try {
        answer = await fetch(`/v1/${path}${search}`, {
            headers: { authorization: `Bearer ${token() ?? ""}`, accept: "application/json" },
            cache: "no-store",
            credentials: "omit",
            referrerPolicy: "no-referrer",
            signal,
        });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new Refused(0, "unreachable", "The gateway does not answer.");
    }
    if (answer.ok) return answer.json();
    const problem = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, problem.code ?? "unknown", problem.detail ?? answer.statusText);
}

export const part = (name) => encodeURIComponent(name);
