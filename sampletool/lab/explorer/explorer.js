"use strict";

/*
 * The explorer walks a graph of recordings and has no semantics of its own: which steps are possible, what they did and
 * how an order ended was recorded from real processes. A node is [events of the token that leads to it, {token: node},
 * and at an end what is broken, or null]. Text of the data is only ever set as text.
 */

const DATA = JSON.parse(document.getElementById("data").textContent);
const STRIKE_KEYS = { "!": "k", "~": "t", "*": "p" };
const MOST_ANSWERS = 4;
const PYTHON =
  /(#.*|"""[^]*?"""|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\b(and|as|async|await|break|continue|def|elif|else|except|finally|for|from|if|in|is|not|or|pass|raise|return|try|while|with|yield|None|True|False)\b/g;

const here = { scenario: DATA.scenarios[0], variant: "naive", path: [], guess: null };
const seen = new Set(); // "scenario/variant/schedule" of the orders whose end was shown
const byId = (id) => document.getElementById(id);

// The graph

const way = () => here.scenario.ways[here.variant];
const child = (of, node, token) => of.nodes[node[1][token]];
const eventsOf = (of, node) => node[0].map((number) => of.events[number]);
const isStep = (token) => /^[A-Z]\d+$/.test(token);
const isEnd = (node) => node.length === 3;
const joined = (words, last = "and") => [words.slice(0, -1).join(", "), ...words.slice(-1)].filter(Boolean).join(` ${last} `);
const sentence = (text) => (text ? `${text.replace(/\.$/, "")}.` : "");

/** Of `A!`, before a step, and of `A2!3`, in step 2 after 3 of its events: who is struck, by what, and that number. */
function strikeOf(token) {
  const [, letter, kind, events] = token.match(/^([A-Z])\d*([^A-Z\d])(\d*)$/) || [];
  return kind && { token, letter, kind, events };
}

const strikesAt = (node) => Object.keys(node[1]).map(strikeOf).filter(Boolean);

/** Every order of a way, with its end. */
function ends(of) {
  if (!of.ends) {
    of.ends = [];
    const walk = (node, path) => {
      if (isEnd(node)) of.ends.push({ path, schedule: path.join(" "), reason: node[2] });
      for (const token of Object.keys(node[1])) walk(child(of, node, token), [...path, token]);
    };
    walk(of.nodes[of.root], []);
    const tokens = [...new Set(of.ends.flatMap((end) => end.path))];
    of.letters = [...new Set(tokens.map((token) => token[0]))].sort();
    of.strikes = [...new Set(tokens.map(strikeOf).filter(Boolean).map(({ letter, kind }) => letter + kind))];
  }
  return of.ends;
}

/** What this worker does next, whoever goes before: from the first recording in which it does anything. */
function upcoming(of, node, letter) {
  for (const token of Object.keys(node[1])) {
    const next = child(of, node, token);
    const found = eventsOf(of, next).find((event) => event.worker === letter) || upcoming(of, next, letter);
    if (found) return found;
  }
  return null;
}

/** How things stand after these tokens. */
function situation(of, path) {
  let node = of.nodes[of.root];
  const rows = eventsOf(of, node).map((event) => ({ token: "", event }));
  for (const token of path) {
    node = child(of, node, token);
    for (const event of eventsOf(of, node)) rows.push({ token, event });
  }
  const last = rows.length ? rows[rows.length - 1].event : { state: of.begins };
  const over = new Map(rows.filter(({ event }) => event.over).map(({ event }) => [event.worker, event]));
  return { of, rows, node, last, over, holds: last.holds || [], waiting: last.waiting || [] };
}

function holdersFor(letter, now) {
  const holders = now.holds.filter((each) => each !== letter);
  const living = now.of.letters.filter((each) => each !== letter && !now.over.has(each));
  return holders.length ? holders : living.length === 1 ? living : [];
}

function statusOf(letter, now) {
  const token = Object.keys(now.node[1]).find((each) => each[0] === letter && isStep(each));
  const ended = now.over.get(letter);
  if (ended) return ended.outcome === "struck" && ended.step.startsWith("kill") ? "was killed" : "has ended";
  if (now.waiting.includes(letter)) {
    const holders = holdersFor(letter, now);
    return holders.length ? `waits for ${joined(holders)}` : "waits";
  }
  if (token) return `next: ${eventsOf(now.of, child(now.of, now.node, token))[0].step}`;
  return isEnd(now.node) ? "is stopped" : "has its turn later";
}

// What was seen

const isRight = (variant) => variant.startsWith("fixed");
const keyOf = (scenario, variant, schedule) => `${scenario.name}/${variant}/${schedule}`;
const isSeen = (end, variant = here.variant) => seen.has(keyOf(here.scenario, variant, end.schedule));
const seenEnds = (variant = here.variant) => ends(here.scenario.ways[variant]).filter((end) => isSeen(end, variant));
const isAsking = (now) => isEnd(now.node) && !seen.has(keyOf(here.scenario, here.variant, here.path.join(" ")));

function isDone(variant) {
  const all = ends(here.scenario.ways[variant]);
  return isRight(variant) ? all.every((end) => isSeen(end, variant)) : seenEnds(variant).some((end) => end.reason);
}

/** Possible ends to choose from, after the same strikes: those of this way first, then those of the others. */
function answers(truth) {
  const struck = (path) => path.map((token) => (strikeOf(token) || {}).kind).join("");
  const isLikeThis = (end) => end.reason && struck(end.path) === struck(here.path);
  const reasons = (of) => ends(of).filter(isLikeThis).map((end) => end.reason);
  const others = Object.values(here.scenario.ways).flatMap(reasons);
  const all = [...new Set([here.scenario.promise, truth, ...reasons(way()), ...others])];
  return all.slice(0, MOST_ANSWERS).sort();
}

const endOf = (now) => now.node[2] || here.scenario.promise;

// What the reader does

function go(path, { isShown = false } = {}) {
  here.path = path;
  here.guess = null;
  const now = situation(way(), path);
  if (isEnd(now.node) && (isShown || !byId("ask").checked)) see(path.join(" "));
  render();
  if (isEnd(now.node)) byId("verdict").scrollIntoView({ block: "nearest" });
}

const see = (schedule) => seen.add(keyOf(here.scenario, here.variant, schedule));

function take(token) {
  const now = situation(way(), here.path);
  if (token in now.node[1]) go([...here.path, token]);
  else say(`${token[0]} ${statusOf(token[0], now)}: it cannot go on now.`);
}

function takeTurn(letter) {
  const now = situation(way(), here.path);
  take(Object.keys(now.node[1]).find((token) => token[0] === letter && isStep(token)) || letter);
}

/** A strike before the next step of the worker that may be struck, or within it, after so many events. */
function strike(kind, events = "") {
  const { node } = situation(way(), here.path);
  const found = strikesAt(node).find((each) => each.kind === kind && each.events === events);
  if (found) go([...here.path, found.token]);
  else say(`${DATA.strikes[kind]} is not possible there.`);
}

function answer(text) {
  if (!isAsking(situation(way(), here.path))) return;
  here.guess = text;
  see(here.path.join(" "));
  render();
  byId("verdict").scrollIntoView({ block: "nearest" });
}

function showBad() {
  const bad = ends(way()).filter((end) => end.reason);
  if (!bad.length) return say(`There is none: ${ends(way()).length} orders were run, and each of them held.`);
  const follows = (end) => end.schedule.startsWith(here.path.join(" "));
  const rank = (end) => [isSeen(end), !follows(end), end.path.length].map(Number);
  const compare = (one, other) => rank(one).map((value, at) => value - rank(other)[at]).find(Boolean) || 0;
  go([...bad].sort(compare)[0].path, { isShown: true });
}

function tryAll() {
  const left = ends(way()).filter((end) => !isSeen(end));
  for (const end of left) see(end.schedule);
  here.fresh = new Map(left.map((end, at) => [end.schedule, at]));
  render();
  delete here.fresh;
}

function choose(name, variant, path = []) {
  here.scenario = DATA.scenarios.find((scenario) => scenario.name === name) || DATA.scenarios[0];
  here.variant = variant in here.scenario.ways ? variant : "naive";
  ends(way());
  build();
  const possible = [];
  for (const token of path) {
    if (!(token in situation(way(), possible).node[1])) break;
    possible.push(token);
  }
  go(possible);
}

/** The next way of this race, or the next race. */
function nextLevel() {
  const variants = Object.keys(here.scenario.ways);
  const after = variants[variants.indexOf(here.variant) + 1];
  if (after) return [here.scenario.name, after];
  const next = DATA.scenarios[(DATA.scenarios.indexOf(here.scenario) + 1) % DATA.scenarios.length];
  return [next.name, "naive"];
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} is copied.`);
  } catch {
    getSelection().selectAllChildren(byId("command"));
    say("It cannot be copied from here; the command is selected.");
  }
}

// The address: #scenario/variant/A1.B1.A!

function readAddress() {
  const [name, variant, path] = decodeURIComponent(location.hash.slice(1)).split("/");
  choose(name, variant, path ? path.split(".") : []);
}

function address() {
  return `#${[here.scenario.name, here.variant, here.path.join(".")].join("/").replace(/\/$/, "")}`;
}

/** After the last of several quick steps: browsers refuse to change an address very often. */
function writeAddress() {
  clearTimeout(here.writing);
  here.writing = setTimeout(() => {
    if (decodeURIComponent(location.hash) !== address()) history.replaceState(null, "", address());
  }, 200);
}

// Elements

function make(tag, attributes, ...children) {
  const svg = ["svg", "g", "path", "circle", "rect", "text", "title"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((each) => each != null && each !== false));
  return element;
}

/** Text with `code` in it. */
const rich = (text) => text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));

const keyCap = (key) => make("kbd", { "aria-hidden": "true" }, key.toUpperCase());

function button(label, key, action, attributes) {
  return make("button", { type: "button", "aria-keyshortcuts": key, onclick: action, ...attributes },
    make("span", {}, label), key && keyCap(key));
}

function coloured(line) {
  const parts = [];
  let from = 0;
  for (const found of line.matchAll(PYTHON)) {
    const kind = found[2] ? "word" : found[0].startsWith("#") ? "comment" : "string";
    parts.push(line.slice(from, found.index), make("span", { class: kind }, found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, line.slice(from)];
}

// What stays as long as the way does

function build() {
  const { scenario, variant } = here;
  document.title = `${scenario.title} · ${DATA.program} lab`;
  byId("scenario").value = scenario.name;
  byId("title").replaceChildren(...rich(scenario.title));
  byId("story").replaceChildren(
    ...scenario.story.split("\n\n").map((text) => make("p", {}, ...rich(text.replace(/\s+/g, " ")))));
  byId("promise").replaceChildren(...rich(scenario.promise));
  byId("question").replaceChildren(...rich(scenario.question));
  byId("rule").replaceChildren(...rich(scenario.rule));
  byId("happened").replaceChildren(`${scenario.happened[0]} `,
    make("a", { href: scenario.happened[1], rel: "noreferrer" }, "Read it there."));
  buildWays();
  byId("stage").style.setProperty("--workers", way().letters.length);
  byId("stage").replaceChildren(sharedCard(), ...way().letters.map(workerCard),
    make("p", { class: "file" }, `Source: ${way().file}. `, ...(isRight(variant) ? rich(scenario.no_verb) : [])));
  buildControls();
  byId("list").open = false;
}

function buildWays() {
  const focused = byId("ways").contains(document.activeElement);
  const choices = Object.entries(here.scenario.ways).map(([name, of]) =>
    make("label", { class: isRight(name) ? "fixed" : "" },
      make("input", { type: "radio", name: "way", value: name, checked: name === here.variant,
        onchange: () => choose(here.scenario.name, name) }),
      make("span", { class: "name" }, name, make("span", { class: "done" })),
      make("span", { class: "says" }, of.says)));
  byId("ways").replaceChildren(make("legend", {}, "How it is done"), ...choices);
  if (focused) byId("ways").querySelector(":checked").focus();
}

function workerCard(letter) {
  const lines = way().source.map((line) => {
    const indent = line.length - line.trimStart().length;
    const element = make("span", { class: "line" }, ...coloured(line.trim()), "\n");
    element.style.setProperty("--indent", `${indent}ch`);
    return element;
  });
  return make("article", { class: `worker ${letter}`, "aria-label": `Worker ${letter}` },
    make("h3", {}, make("span", { class: "badge" }, letter), make("span", { class: "status" }),
      make("span", { class: "alone" }, "is alone")),
    make("div", { class: "source", tabindex: 0, role: "region", "aria-label": `What ${letter} runs` },
      make("code", {}, ...lines)),
    make("dl", { class: "own" }));
}

function sharedCard() {
  return make("article", { class: "shared", "aria-label": `What they share: ${here.scenario.shared}` },
    make("h3", {}, here.scenario.shared), make("p", { class: "state" }), make("div", { class: "disk" }));
}

function buildControls() {
  const workers = way().letters.map((letter) =>
    button("", letter.toLowerCase(), () => takeTurn(letter), { class: `turn ${letter}`, "data-letter": letter }));
  const strikes = way().strikes.map(([letter, kind]) =>
    make("div", { class: "strikes", "data-kind": kind },
      button(kind === "*" ? DATA.strikes[kind] : `${DATA.strikes[kind]} to ${letter}`, STRIKE_KEYS[kind], () => strike(kind),
        { class: "strike" }),
      make("details", { class: "within" }, make("summary"), make("div"))));
  byId("controls").replaceChildren(
    make("div", { class: "turns" }, ...workers, ...strikes),
    make("div", { class: "tools" },
      button("Undo", "u", () => go(here.path.slice(0, -1)), { id: "undo" }),
      button("Start again", "r", () => go([]), { id: "reset" }),
      button("Show me a bad one", "s", showBad)));
}

// What changes with each step

function render() {
  const now = situation(way(), here.path);
  for (const letter of way().letters) renderWorker(letter, now);
  renderShared(now);
  renderControls(now);
  renderWays();
  renderVerdict(now);
  renderHistory(now);
  renderMap();
  renderList();
  const schedule = here.path.length ? ` --schedule "${here.path.join(" ")}"` : "";
  byId("command").textContent = `${DATA.program} lab run ${here.scenario.name} --variant ${here.variant}${schedule}`;
  say(inWords(now));
  writeAddress();
}

function say(text) {
  byId("told").textContent = text;
}

/** The last step and what is possible now, as it is read aloud. */
function inWords(now) {
  const shared = here.scenario.shared.replace(/^the /, "The ");
  const told = [];
  const token = here.path[here.path.length - 1];
  const count = here.path.length;
  for (const { event } of now.rows.slice(now.rows.length - (count ? eventsOf(now.of, now.node).length : 0))) {
    const waits = event.outcome === "blocked" && `${event.step}, and ${statusOf(event.worker, now)}`;
    const text = waits || (event.outcome === "resumed" ? `${event.step}, has it now` : event.step);
    told.push(`${event.worker}: ${text}.`);
    if (event.over && event.outcome !== "struck") told.push(`${event.worker} has ended.`);
  }
  told.unshift(count ? `Step ${count}, ${token}.` : "Nothing has happened yet.");
  if (isAsking(now)) {
    return [...told, `No worker can go on. How did it end? Choose an answer, 1 to ${answers(endOf(now)).length}.`].join(" ");
  }
  told.push(`${shared}: ${now.last.state}.`);
  if (now.last.note) told.push(sentence(`${now.last.note[0].toUpperCase()}${now.last.note.slice(1)}`));
  if (isEnd(now.node)) told.push(now.node[2] ? `It broke: ${sentence(now.node[2])}` : `It holds: ${here.scenario.promise}`);
  else {
    const able = way().letters.filter((letter) => statusOf(letter, now).startsWith("next: "));
    told.push(`Possible now: ${joined(able.map((letter) => `${letter} (${statusOf(letter, now).slice(6)})`), "or")}.`);
  }
  return told.join(" ");
}

function renderWorker(letter, now) {
  const card = byId("stage").querySelector(`.worker.${letter}`);
  const ended = now.over.has(letter);
  const own = now.rows.filter(({ event }) => event.worker === letter).map(({ event }) => event);
  const at = ended ? null : upcoming(now.of, now.node, letter) || own[own.length - 1];
  card.classList.toggle("over", ended);
  card.classList.toggle("waits", now.waiting.includes(letter));
  card.classList.toggle("holds", now.holds.includes(letter));
  card.querySelector(".status").textContent = statusOf(letter, now);
  const lines = card.querySelectorAll(".line");
  lines.forEach((line, number) => {
    const isCurrent = at != null && at.line === number;
    line.classList.toggle("current", isCurrent);
    if (isCurrent) line.setAttribute("aria-current", "step");
    else line.removeAttribute("aria-current");
  });
  const source = card.querySelector(".source");
  const current = at && lines[at.line];
  if (current) source.scrollTop = current.offsetTop - source.clientHeight / 2;
  const copies = Object.entries((at && at.private) || {});
  card.querySelector(".own").replaceChildren(
    ...copies.map(([name, value]) => make("div", {}, make("dt", {}, `its ${name}`), make("dd", {}, value.trim() || "(empty)"))));
}

function renderShared(now) {
  const card = byId("stage").querySelector(".shared");
  const state = isAsking(now) ? "?" : now.last.state;
  const box = card.querySelector(".state");
  const before = now.rows.length > 1 ? now.rows[now.rows.length - 2].event.state : way().begins;
  box.textContent = state;
  card.classList.toggle("changed", now.rows.length > 0 && state !== before);
  const disk = isAsking(now) ? null : now.last.on_disk;
  card.querySelector(".disk").replaceChildren(
    ...(disk ? [make("h4", {}, "That is the cache. After a power cut now the disk may hold"),
      make("ul", {}, ...disk.map((each) => make("li", {}, each)))] : []));
}

function renderControls(now) {
  const controls = byId("controls");
  for (const turn of controls.querySelectorAll(".turn")) {
    const status = statusOf(turn.dataset.letter, now);
    turn.setAttribute("aria-disabled", String(!status.startsWith("next: ")));
    turn.querySelector("span").textContent = `${turn.dataset.letter} ${status.replace("next: ", "· ")}`;
  }
  for (const box of controls.querySelectorAll(".strikes")) {
    const possible = strikesAt(now.node).filter(({ kind }) => kind === box.dataset.kind);
    const within = possible.filter(({ events }) => events).sort((one, other) => one.events - other.events);
    const [plain, list] = [box.querySelector(".strike"), box.querySelector(".within")];
    plain.setAttribute("aria-disabled", String(!possible.some(({ events }) => !events)));
    if (list.contains(document.activeElement)) plain.focus();
    list.hidden = !within.length;
    list.querySelector("summary").textContent =
      here.path.some(isStep) || within.some(({ token }) => token[1] !== "0") ? "within its next step" : "before its first step";
    list.querySelector("div").replaceChildren("after event ", ...within.map(({ kind, events }) =>
      make("button", { type: "button", onclick: () => strike(kind, events) }, events)));
  }
  for (const id of ["undo", "reset"]) byId(id).setAttribute("aria-disabled", String(!here.path.length));
}

function renderWays() {
  for (const input of byId("ways").querySelectorAll("input")) {
    const mark = { true: " ✓", false: "" }[isDone(input.value)];
    input.parentElement.querySelector(".done").textContent = mark;
  }
  const { length } = ends(way());
  const bad = ends(way()).filter((end) => end.reason).length;
  const found = seenEnds().filter((end) => end.reason).length;
  const orders = length === 1 ? "the one order" : `all ${length} orders`;
  byId("task").textContent =
    isRight(here.variant)
      ? isDone(here.variant)
        ? `You tried ${orders}: ${bad ? `${bad} of them break it.` : "none of them breaks it."}`
        : `Last task: break the ${here.variant} way. Try ${orders}, and be convinced.`
      : found
        ? `You broke it: ${found} of its ${bad} bad orders found.`
        : here.variant === "naive"
          ? "Your task: find an order that breaks it."
          : "A tempting cure. Your task: find an order that breaks it all the same.";
}

function renderVerdict(now) {
  const box = byId("verdict");
  box.className = "";
  if (!isEnd(now.node)) return box.replaceChildren();
  const truth = endOf(now);
  if (isAsking(now)) {
    box.className = "card asks";
    return box.replaceChildren(
      make("h3", {}, "How did it end?"),
      make("div", { class: "answers" },
        ...answers(truth).map((text, at) => button(text, String(at + 1), () => answer(text), { class: "answer" })),
        button("Just show me", "0", () => answer(null), { class: "plain" })));
  }
  const shown = here.path.join(" ").startsWith(way().shows);
  box.className = `card ${now.node[2] ? "bad" : "good"}`;
  box.replaceChildren(...[
    make("h3", {}, mark(now.node[2]), now.node[2] ? "It broke" : "It holds"),
    make("p", {}, truth, shown && ` Why: ${sentence(way().because)}`),
    here.guess && make("p", { class: "guess" }, here.guess === truth ? "That is what you said." : `You said: ${here.guess}`),
    isDone(here.variant) && isRight(here.variant) && make("p", { class: "moral" }, `The rule: ${here.scenario.rule}`),
    make("p", { class: "buttons" },
      button("Another order", "r", () => go([])),
      isDone(here.variant) && nextButton())].filter(Boolean));
}

function nextButton() {
  const [name, variant] = nextLevel();
  const label = name === here.scenario.name ? `Next: ${variant}` : `Next race: ${name}`;
  return button(label, "n", () => choose(name, variant), { class: "next" });
}

/** A diamond with a cross for what broke, a circle with a tick for what holds. */
function mark(reason) {
  return make("svg", { viewBox: "-9 -9 18 18", class: `mark ${reason ? "bad" : "good"}`, "aria-hidden": "true" },
    ...markParts(reason));
}

function markParts(reason) {
  return reason
    ? [make("rect", { x: -5.5, y: -5.5, width: 11, height: 11, rx: 1.5, transform: "rotate(45)" }),
      make("path", { d: "M-2.6-2.6 2.6 2.6M2.6-2.6-2.6 2.6" })]
    : [make("circle", { r: 6.5 }), make("path", { d: "M-3 .3-.8 2.6 3.2-2.2" })];
}

function renderHistory(now) {
  const { letters } = way();
  const head = make("tr", {}, make("th", { scope: "col" }, "#"), ...letters.map((letter) =>
    make("th", { scope: "col", class: letter }, letter)), make("th", { scope: "col" }, here.scenario.shared));
  let state = way().begins;
  const body = now.rows.map(({ event }, at) => {
    const isHidden = isAsking(now) && at === now.rows.length - 1;
    const cells = letters.map((letter) => {
      const acts = event.worker === letter;
      const classes = [letter, (event.holds || []).includes(letter) && "holds", (event.waiting || []).includes(letter) && "waits",
        acts && event.outcome === "struck" && "struck"].filter(Boolean).join(" ");
      const label = { done: event.step, blocked: `${event.step}: has to wait`, resumed: `${event.step}: has it now` };
      return make("td", { class: classes }, acts && make("span", { class: "act" }, label[event.outcome] || event.step));
    });
    const isNew = event.state !== state;
    state = event.state;
    const note = !isHidden && event.note && make("span", { class: "note" }, `◀ ${event.note}`);
    return make("tr", {}, make("th", { scope: "row" }, String(at + 1)), ...cells,
      make("td", { class: isNew ? "state new" : "state" }, isHidden ? "?" : event.state, note && " ", note));
  });
  const first = make("tr", {}, make("th", { scope: "row" }, "0"), ...letters.map((letter) => make("td", { class: letter })),
    make("td", { class: "state" }, way().begins));
  byId("history").replaceChildren(make("thead", {}, head), make("tbody", {}, first, ...body));
}

// All orders as a tree

function renderMap() {
  const of = way();
  const all = ends(of);
  const row = all.length <= 24 ? 22 : all.length <= 64 ? 15 : 10;
  const depth = Math.max(...all.map((end) => end.path.length));
  const column = Math.max(17, Math.min(52, 290 / (depth + 0.5)));
  const radius = Math.min(8, row / 2.7, column / 2.6);
  const edges = make("g", { class: "edges" });
  const dots = make("g", { class: "dots" });
  const isOn = (path) => path.every((token, at) => here.path[at] === token);
  const known = seenEnds();
  const walked = new Set([here.path, ...known.map((end) => end.path)].flatMap((path) =>
    path.map((_, at) => path.slice(0, at + 1).join(" "))));
  const isKnown = (path) => walked.has(path.join(" "));
  let below = 0;
  let ring = null;

  const place = (node, path) => {
    const x = 12 + path.length * column;
    let y;
    if (isEnd(node)) {
      y = 12 + below++ * row;
      const end = { path, schedule: path.join(" "), reason: node[2] };
      dots.append(endMark(end, x + column * 0.75, y, Math.min(1, row / 15)));
      edges.append(make("path", { class: `edge ${isKnown(path) ? "known" : ""}`, d: `M${x} ${y}h${column * 0.75}` }));
    }
    const tokens = Object.keys(node[1]);
    const under = tokens.map((token) => place(child(of, node, token), [...path, token]));
    if (tokens.length) y = (under[0] + under[under.length - 1]) / 2;
    tokens.forEach((token, at) => {
      const reached = [...path, token];
      const bend = `M${x} ${y}C${x + column / 2} ${y} ${x + column / 2} ${under[at]} ${x + column} ${under[at]}`;
      const kind = `${token[0]} ${isKnown(reached) ? "known" : ""} ${isOn(reached) ? "on" : ""}`;
      edges.append(make("path", { class: `edge ${kind}`, d: bend }));
      dots.append(make("g", { class: `dot ${kind}`, transform: `translate(${x + column} ${under[at]})`,
        onclick: () => go(reached) }, make("title", {}, reached.join(" ")), make("circle", { r: radius }),
      radius > 5.4 && make("text", { dy: ".34em", "font-size": radius * 1.25 }, (strikeOf(token) || { kind: token[0] }).kind)));
    });
    if (path.length === here.path.length && isOn(path)) ring = { x, y };
    return y;
  };
  const middle = place(of.nodes[of.root], []);
  dots.append(make("circle", { class: "root", cx: 12, cy: middle, r: 3.5 }));

  const [width, height] = [24 + (depth + 1) * column, 14 + below * row];
  const bad = known.filter((end) => end.reason).length;
  const drawn = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
    "aria-label": `A tree of ${all.length} orders; ${known.length} seen, ${bad} of them bad.` },
  edges, dots, make("circle", { class: "ring", cx: ring.x, cy: ring.y, r: radius + 3 }));
  const map = byId("map");
  map.replaceChildren(drawn);
  map.scrollTop = ring.y - map.clientHeight / 2;
  byId("count").textContent = `${known.length} of ${all.length} seen${known.length ? `, ${bad} bad` : ""}`;
  const left = all.length - known.length;
  byId("all").replaceChildren(
    left ? button(`Try ${left === all.length ? "all" : "the other"} ${left}`, "x", tryAll) : nextButton());
}

function endMark(end, x, y, scale) {
  const known = isSeen(end);
  const parts = known ? markParts(end.reason) : [make("circle", { r: 4 })];
  const about = known ? (end.reason ? `broke: ${end.reason}` : "holds") : "not seen yet";
  const delay = here.fresh && here.fresh.get(end.schedule);
  const group = make("g", { class: `end ${known ? (end.reason ? "bad" : "good") : "unseen"} ${delay != null ? "fresh" : ""}`,
    onclick: () => go(end.path) }, make("title", {}, `${end.schedule}: ${about}`), ...parts);
  group.style.animationDelay = `${(delay || 0) * Math.min(40, 1200 / ends(way()).length)}ms`;
  return make("g", { transform: `translate(${x} ${y}) scale(${scale})` }, group);
}

function renderList() {
  if (!byId("list").open) return;
  const rows = ends(way()).map((end) => {
    const known = isSeen(end);
    return make("tr", {}, make("td", {}, make("button", { type: "button", class: "schedule", onclick: () => {
      go(end.path);
      byId("verdict").focus();
    } }, end.schedule)),
    make("td", {}, known && mark(end.reason), known ? end.reason || "holds" : "not seen yet"));
  });
  byId("list").querySelector("table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "order"), make("th", { scope: "col" }, "end"))),
    make("tbody", {}, ...rows));
}

// The keys, and what stays for the whole page

function press(event) {
  const isTyping = event.target.closest("select") || event.ctrlKey || event.altKey || event.metaKey;
  if (isTyping || !byId("keys").checked) return;
  const key = event.key.toLowerCase();
  const count = here.count || "";
  here.count = /^\d$/.test(key) ? count + key : "";
  const kind = way().strikes.map((each) => each[1]).find((each) => STRIKE_KEYS[each] === key);
  const actions = { u: () => go(here.path.slice(0, -1)), backspace: () => go(here.path.slice(0, -1)), r: () => go([]),
    s: showBad, x: tryAll, n: () => choose(...nextLevel()) };
  const now = situation(way(), here.path);
  if (way().letters.includes(key.toUpperCase())) takeTurn(key.toUpperCase());
  else if (kind) strike(kind, count);
  else if (isAsking(now) && key === "0") answer(null);
  else if (isAsking(now) && answers(endOf(now))[key - 1]) answer(answers(endOf(now))[key - 1]);
  else if (Object.hasOwn(actions, key)) actions[key]();
  else return;
  event.preventDefault();
}

function begin() {
  const groups = new Map();
  for (const scenario of DATA.scenarios) {
    if (!groups.has(scenario.level)) groups.set(scenario.level, make("optgroup", { label: scenario.level }));
    groups.get(scenario.level).append(make("option", { value: scenario.name }, scenario.title));
  }
  byId("scenario").append(...groups.values());
  byId("choice").hidden = DATA.scenarios.length === 1;
  byId("scenario").addEventListener("change", (event) => choose(event.target.value, "naive"));
  byId("copy-command").addEventListener("click", () => copy(byId("command").textContent, "The command"));
  byId("copy-address").addEventListener("click", () => copy(location.href.split("#")[0] + address(), "The address"));
  byId("list").addEventListener("toggle", renderList);
  addEventListener("beforeprint", () => { byId("list").open = true; renderList(); });
  addEventListener("hashchange", () => {
    if (!["", address()].includes(decodeURIComponent(location.hash))) readAddress();
  });
  addEventListener("keydown", press);
  const strikes = Object.entries(STRIKE_KEYS).map(([strike, key]) => [key, DATA.strikes[strike]]);
  const keys = [["a b c", "this worker goes on"], ...strikes, ["3 k", "within its next step, after 3 events"], ["u", "undo"], ["r", "start again"],
    ["s", "show me a bad one"], ["1 to 4", "answer"], ["x", "try all orders"], ["n", "next way or race"]];
  byId("help").append(...keys.map(([key, text]) => make("div", {}, make("dt", {}, keyCap(key)), make("dd", {}, text))));
  for (const [kind, text] of [["bad", "broke"], ["good", "holds"]]) {
    document.querySelector(".legend").append(make("span", {}, mark(kind === "bad"), text));
  }
  document.querySelector(".legend").append(make("span", {}, make("span", { class: "hollow" }), "not seen yet"),
    ...Object.entries(DATA.strikes).map(([sign, text]) => make("span", {}, `${sign} ${text}`)));
  document.documentElement.classList.toggle("framed", self !== top);
  document.querySelector("main").hidden = false;
  readAddress();
}

begin();
