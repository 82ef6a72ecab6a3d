// Make elements. Texts become text nodes and nothing else: what is shown was written by models in training.

const SVG = "http://www.w3.org/2000/svg";

/** Make an HTML element: attributes by name, "on…" listeners, then children (elements, texts, lists, or nothing). */
export function h(name, attributes, ...children) {
    return fill(document.createElement(name), attributes, children);
}

/** Make an SVG element. */
export function s(name, attributes, ...children) {
    return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Replace what is in an element. */
export function put(element, ...children) {
    element.replaceChildren(
        ...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false),
    );
    return element;
}

/** Replace what is in an element, unless it is the same: whoever has the focus or a selection there keeps it. */
export function renew(element, ...children) {
    const made = put(document.createElement("div"), children);
    const same = made.childNodes.length === element.childNodes.length;
    if (same && [...made.childNodes].every((child, index) => child.isEqualNode(element.childNodes[index]))) return;
    element.replaceChildren(...made.childNodes);
}

function fill(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes ?? {})) {
        if (value === null || value === undefined || value === false) continue;
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else element.setAttribute(key, value === true ? "" : String(value));
    }
    return put(element, children);
}
