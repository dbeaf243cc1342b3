/* Functions that create elements. Text from the data is always added as text, never as HTML. */

const SVG_TAGS = ["svg", "g", "path", "circle", "rect", "text", "title"];
const PYTHON_KEYWORDS =
  "and as async await break continue def elif else except finally for from if in is not or pass " +
  "raise return try while with yield None True False";
const PYTHON_TOKENS = new RegExp(
  [
    /(?<comment>#.*)/,
    /(?<string>"""[^]*?"""|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')/,
    new RegExp(`\\b(?<keyword>${PYTHON_KEYWORDS.replaceAll(" ", "|")})\\b`),
  ].map((pattern) => pattern.source).join("|"),
  "g",
);

function byId(id) {
  return document.getElementById(id);
}

/** Create an element. A function as the value of `onclick` and the like is called for the event. */
function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.includes(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    const isAbsent = value === false || value === null || value === undefined;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (!isAbsent) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** Return the nodes of a text with `code` in it. */
function withCode(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

function keyCap(key) {
  return make("kbd", { "aria-hidden": "true" }, key.toUpperCase());
}

function button(label, key, onClick, attributes = {}) {
  return make(
    "button",
    { type: "button", "aria-keyshortcuts": key, onclick: onClick, ...attributes },
    make("span", {}, label),
    keyCap(key),
  );
}

/** Return the nodes of each line of Python in colors. A string may continue on the next lines. */
function highlightLines(lines) {
  const nodesByLine = [[]];
  for (const { kind, text } of splitPython(lines.join("\n"))) {
    text.split("\n").forEach((part, index) => {
      if (index > 0) nodesByLine.push([]);
      const nodes = nodesByLine.at(-1);
      // The page indents the lines by their style.
      const shown = nodes.length ? part : part.trimStart();
      if (shown) nodes.push(kind ? make("span", { class: kind }, shown) : shown);
    });
  }
  return nodesByLine;
}

/** Return the parts of a Python program: comments, strings, keywords, and the text between them. */
function splitPython(program) {
  const parts = [];
  let end = 0;
  for (const match of program.matchAll(PYTHON_TOKENS)) {
    const [kind] = Object.entries(match.groups).find(([, text]) => text !== undefined);
    parts.push({ kind: null, text: program.slice(end, match.index) }, { kind, text: match[0] });
    end = match.index + match[0].length;
  }
  parts.push({ kind: null, text: program.slice(end) });
  return parts;
}

/** Return the parts of a mark: a diamond with a cross if the run broke, or a circle with a tick. */
function markParts(isBroken) {
  if (isBroken) {
    return [
      make("rect", { x: -5.5, y: -5.5, width: 11, height: 11, rx: 1.5, transform: "rotate(45)" }),
      make("path", { d: "M-2.6-2.6 2.6 2.6M2.6-2.6-2.6 2.6" }),
    ];
  }
  return [make("circle", { r: 6.5 }), make("path", { d: "M-3 .3-.8 2.6 3.2-2.2" })];
}

function mark(isBroken) {
  const kind = isBroken ? "bad" : "good";
  const attributes = { viewBox: "-9 -9 18 18", class: `mark ${kind}`, "aria-hidden": "true" };
  return make("svg", attributes, ...markParts(isBroken));
}
