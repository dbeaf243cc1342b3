/*
 * The parts of the page. `build...` creates what stays as long as the variant does, and `render...`
 * shows what changes with each step. Both take what they show from `view`, see explorer.js.
 */

const MAX_NEAR_LINES = 6;

// What stays as long as the variant does

function buildPanels() {
  const { race, variant } = view;
  // A page with one race has a title of its own.
  if (DATA.scenarios.length > 1) document.title = `${race.title} · ${DATA.program} lab`;
  byId("race").value = race.name;
  buildStory(race);
  buildVariants(race, variant);
  buildStage(race, variant);
  buildControls(variant);
  buildLegend(variant);
  byId("list").open = false;
}

function buildStory(race) {
  const paragraphs = race.story.split("\n\n").map((text) => text.replace(/\s+/g, " "));
  byId("title").replaceChildren(...withCode(race.title));
  byId("story").replaceChildren(...paragraphs.map((text) => make("p", {}, ...withCode(text))));
  const { article } = menuEntryOf(race.name);
  byId("article").hidden = !article;
  byId("article").querySelector("a").href = ROOT + article;
  byId("promise").replaceChildren(...withCode(race.promise));
  byId("question").replaceChildren(...withCode(race.question));
  byId("rule").replaceChildren(...withCode(race.rule));
  const [incident, address] = race.happened;
  const attributes = { href: address, rel: "noreferrer", target: "_top" };
  byId("happened").replaceChildren(`${incident} `, make("a", attributes, "Read more about it."));
}

function buildVariants(race, chosen) {
  const hadFocus = byId("variants").contains(document.activeElement);
  const labels = race.variants.map((variant) => {
    const attributes = {
      type: "radio",
      name: "variant",
      value: variant.name,
      checked: variant === chosen,
      onchange: () => openVariant(race.name, variant.name),
    };
    return make(
      "label",
      {},
      make("input", attributes),
      make("span", { class: "name" }, variant.name, make("span", { class: "solved" })),
      make("span", { class: "says" }, ...withCode(variant.data.says)),
    );
  });
  byId("variants").replaceChildren(make("legend", {}, "Variant"), ...labels);
  if (hadFocus) byId("variants").querySelector(":checked").focus();
}

function buildStage(race, variant) {
  const workers = variant.letters.map((letter) => workerCard(letter, variant));
  const file = make("p", { class: "file" }, `Source: ${variant.data.file}. `);
  // If no command of the tool does this, say so below the fix.
  if (variant.isFix) file.append(...withCode(race.no_verb));
  byId("stage").style.setProperty("--workers", workers.length);
  byId("stage").replaceChildren(sharedCard(race), ...workers, file);
}

function sharedCard(race) {
  return make(
    "article",
    { class: "shared", "aria-label": `What they share: ${race.shared}` },
    make("h3", {}, race.shared),
    make("p", { class: "state" }),
    make("div", { class: "disk" }),
  );
}

function workerCard(letter, variant) {
  const code = make("code", {}, ...sourceLines(variant.data.source));
  const heading = make(
    "h3",
    {},
    make("span", { class: "badge" }, letter),
    make("span", { class: "status" }),
    make("span", { class: "alone" }, "holds the lock"),
  );
  const label = `The code of ${letter}`;
  const attributes = { class: "source", tabindex: 0, role: "region", "aria-label": label };
  return make(
    "article",
    { class: `worker ${letter}`, "aria-label": `Worker ${letter}` },
    heading,
    make("div", attributes, code),
    make("dl", { class: "own" }),
  );
}

function sourceLines(lines) {
  const nodesByLine = highlightLines(lines);
  return lines.map((line, number) => {
    const indent = line.length - line.trimStart().length;
    const element = make("span", { class: "line" }, ...nodesByLine[number], "\n");
    element.style.setProperty("--indent", `${indent}ch`);
    return element;
  });
}

function buildControls(variant) {
  const turns = variant.letters.map((letter) => {
    const attributes = { class: `turn ${letter}`, "data-letter": letter };
    return button("", letter.toLowerCase(), () => takeTurn(letter), attributes);
  });
  const tools = [
    button("Undo", "u", undo, { id: "undo" }),
    button("Start again", "r", startAgain, { id: "start-again" }),
    button("Show me a bad one", "s", showBadOrder),
  ];
  byId("controls").replaceChildren(
    make("div", { class: "turns" }, ...turns, ...variant.strikes.map(strikeButtons)),
    make("div", { class: "tools" }, ...tools),
  );
}

/** Return a button for a strike before the next step, and a list of the strikes within it. */
function strikeButtons({ letter, kind }) {
  const name = DATA.strikes[kind];
  // A power cut strikes the whole machine, and the other strikes one worker.
  const label = kind === POWER_CUT ? name : `${name} to ${letter}`;
  return make(
    "div",
    { class: "strikes", "data-kind": kind },
    button(label, STRIKE_KEYS[kind], () => strike(kind), { class: "strike" }),
    make("details", { class: "within" }, make("summary"), make("div")),
  );
}

function buildLegend(variant) {
  const kinds = unique(variant.strikes.map((each) => each.kind));
  const strikes = kinds.map((kind) => make("span", {}, `${kind} ${DATA.strikes[kind]}`));
  document.querySelector(".legend").replaceChildren(
    make("span", {}, mark(true), "broke"),
    make("span", {}, mark(false), "holds"),
    make("span", {}, make("span", { class: "hollow" }), "not seen yet"),
    ...strikes,
  );
}

// What changes with each step

function renderPanels() {
  const situation = new Situation(view.variant, view.path);
  for (const letter of view.variant.letters) renderWorker(letter, situation);
  renderShared(situation);
  renderControls(situation);
  renderVariants();
  renderVerdict(situation);
  renderHistory(situation);
  renderMap(situation);
  renderList();
  renderProgress();
  byId("command").textContent = replayCommand();
  say(describeSituation(view.race, situation, { isEndHidden: isAsking(situation) }));
}

function say(text) {
  byId("message").textContent = text;
}

function replayCommand() {
  const command = `${DATA.program} lab run ${view.race.name} --variant ${view.variant.name}`;
  return view.path.length ? `${command} --schedule "${view.path.join(" ")}"` : command;
}

function renderWorker(letter, situation) {
  const card = byId("stage").querySelector(`.worker.${letter}`);
  card.classList.toggle("over", situation.ended.has(letter));
  card.classList.toggle("waits", situation.waiting.includes(letter));
  card.classList.toggle("holds", situation.lockHolders.includes(letter));
  card.querySelector(".status").textContent = statusOf(letter, situation);
  const position = situation.positionOf(letter);
  const source = card.querySelector(".source");
  markCurrentLine(source, position?.line);
  markNearLines(source, position?.line ?? situation.lastLineOf(letter) ?? 0);
  const copies = Object.entries(position?.private ?? {});
  const entries = copies.map(([name, value]) => ownCopy(name, value));
  card.querySelector(".own").replaceChildren(...entries);
}

function markCurrentLine(source, currentLine) {
  source.querySelectorAll(".line").forEach((line, number) => {
    const isCurrent = number === currentLine;
    line.classList.toggle("current", isCurrent);
    if (isCurrent) line.setAttribute("aria-current", "step");
    else line.removeAttribute("aria-current");
  });
  const current = source.querySelector(".current");
  if (current) source.scrollTop = current.offsetTop - source.clientHeight / 2;
}

/** Mark the lines that a frame hides of a long source, and those that it shows as dots. */
function markNearLines(source, centerLine) {
  source.querySelectorAll(".line").forEach((line, number) => {
    const distance = Math.abs(number - centerLine);
    line.classList.toggle("dots", distance === MAX_NEAR_LINES + 1);
    line.classList.toggle("far", distance > MAX_NEAR_LINES + 1);
  });
}

function ownCopy(name, value) {
  return make("div", {}, make("dt", {}, `its ${name}`), make("dd", {}, value.trim() || "(empty)"));
}

function renderShared(situation) {
  const card = byId("stage").querySelector(".shared");
  const isHidden = isAsking(situation);
  const { state } = situation.lastEvent;
  card.querySelector(".state").textContent = isHidden ? "?" : state;
  const hasChanged = situation.events.length > 0 && (isHidden || state !== situation.stateBefore);
  card.classList.toggle("changed", hasChanged);
  const onDisk = isHidden ? [] : (situation.lastEvent.on_disk ?? []);
  card.querySelector(".disk").replaceChildren();
  if (onDisk.length) {
    card.querySelector(".disk").append(
      make("h4", {}, "This is what readers see. After a power cut now, the disk may contain:"),
      make("ul", {}, ...onDisk.map((content) => make("li", {}, content))),
    );
  }
}

function renderControls(situation) {
  for (const turn of byId("controls").querySelectorAll(".turn")) {
    const { letter } = turn.dataset;
    const step = situation.possibleStepOf(letter);
    const status = step ? `· ${step.step}` : statusOf(letter, situation);
    setDisabled(turn, !step);
    turn.querySelector("span").textContent = `${letter} ${status}`;
  }
  for (const box of byId("controls").querySelectorAll(".strikes")) renderStrikes(box, situation);
  for (const id of ["undo", "start-again"]) setDisabled(byId(id), situation.path.length === 0);
}

/** A button with this attribute stays in reach of the keyboard, and says why it does nothing. */
function setDisabled(element, isDisabled) {
  element.setAttribute("aria-disabled", String(isDisabled));
}

function renderStrikes(box, situation) {
  const possible = strikesAt(situation.node).filter((each) => each.kind === box.dataset.kind);
  const within = possible.filter((each) => each.events);
  within.sort((one, other) => one.events - other.events);
  const before = box.querySelector(".strike");
  setDisabled(before, within.length === possible.length);
  const list = box.querySelector(".within");
  if (list.contains(document.activeElement)) before.focus();
  list.hidden = within.length === 0;
  const hasBegun = situation.path.some(isStep) || within.some(({ token }) => token[1] !== "0");
  const summary = hasBegun ? "within its next step" : "before its first step";
  list.querySelector("summary").textContent = summary;
  const buttons = within.map(({ kind, events }) =>
    make("button", { type: "button", onclick: () => strike(kind, events) }, events));
  list.querySelector("div").replaceChildren("after event ", ...buttons);
}

function renderVariants() {
  const { race, variant } = view;
  const labels = byId("variants").querySelectorAll("label");
  race.variants.forEach((each, index) => {
    labels[index].querySelector(".solved").textContent = hasSolved(race, each) ? " ✓" : "";
  });
  byId("task").textContent = describeTask(race, variant);
}

function renderVerdict(situation) {
  const box = byId("verdict");
  box.className = "";
  box.replaceChildren();
  if (!situation.isAtEnd) return;
  if (isAsking(situation)) {
    box.className = "card asks";
    box.append(make("h3", {}, "How did it end?"), answerButtons(situation));
    return;
  }
  const isBroken = situation.reason !== null;
  box.className = `card ${isBroken ? "bad" : "good"}`;
  box.append(
    make("h3", {}, mark(isBroken), isBroken ? "It broke" : "It holds"),
    ...verdictTexts(situation),
    verdictButtons(),
  );
}

function answerButtons(situation) {
  const answers = possibleAnswers(view.race, situation);
  const buttons = answers.map((text, index) => {
    const key = String(index + 1);
    return button(text, key, () => answer(text), { class: "answer" });
  });
  const skip = button("Just show me", "0", () => answer(null), { class: "plain" });
  return make("div", { class: "answers" }, ...buttons, skip);
}

function verdictTexts(situation) {
  const { race, variant, guess } = view;
  const outcome = outcomeOf(race, situation);
  const explanation = make("p", {}, ...withCode(outcome));
  // The explanation is about the one order that the page of the race tells.
  const isToldOrder = situation.schedule.startsWith(variant.data.shows);
  if (isToldOrder) explanation.append(" Why: ", ...withCode(asSentence(variant.data.because)));
  const texts = [explanation];
  if (guess) {
    const comment = guess === outcome ? "That is what you said." : `You said: ${guess}`;
    texts.push(make("p", { class: "guess" }, comment));
  }
  if (variant.isFix && hasSolved(race, variant)) {
    texts.push(make("p", { class: "moral" }, "The rule: ", ...withCode(race.rule)));
  }
  return texts;
}

function verdictButtons() {
  const buttons = make("p", { class: "buttons" }, button("Another order", "r", startAgain));
  if (hasSolved(view.race, view.variant)) buttons.append(nextButton());
  return buttons;
}

function nextButton() {
  const next = nextVariant();
  const isInThisRace = next.entry.name === view.race.name;
  const label = isInThisRace ? `Next: ${next.variant}` : `Next race: ${next.entry.title}`;
  return button(label, "n", openNext, { class: "next" });
}

function renderHistory(situation) {
  const { race, variant } = view;
  const letterHeads = variant.letters.map((letter) => columnHead(letter, { class: letter }));
  const head = make("tr", {}, columnHead("#"), ...letterHeads, columnHead(race.shared));
  const rows = [firstRow(variant)];
  let stateBefore = variant.data.begins;
  situation.events.forEach((event, index) => {
    const isHidden = isAsking(situation) && index === situation.events.length - 1;
    rows.push(historyRow(index + 1, event, { isHidden, isNew: event.state !== stateBefore }));
    stateBefore = event.state;
  });
  byId("history").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

function columnHead(text, attributes = {}) {
  return make("th", { scope: "col", ...attributes }, text);
}

function firstRow(variant) {
  const cells = variant.letters.map((letter) => make("td", { class: letter }));
  const state = make("td", { class: "state" }, variant.data.begins);
  return make("tr", {}, make("th", { scope: "row" }, "0"), ...cells, state);
}

function historyRow(number, event, { isHidden, isNew }) {
  const cells = view.variant.letters.map((letter) => historyCell(letter, event));
  const state = make("td", { class: isNew ? "state new" : "state" }, isHidden ? "?" : event.state);
  if (event.note && !isHidden) {
    state.append(" ", make("span", { class: "note" }, `◀ ${event.note}`));
  }
  return make("tr", {}, make("th", { scope: "row" }, String(number)), ...cells, state);
}

function historyCell(letter, event) {
  const cell = make("td", { class: letter });
  cell.classList.toggle("holds", (event.holds ?? []).includes(letter));
  cell.classList.toggle("waits", (event.waiting ?? []).includes(letter));
  if (event.worker === letter) {
    cell.classList.toggle("struck", event.outcome === "struck");
    cell.append(make("span", { class: "act" }, describeAct(event)));
  }
  return cell;
}

function describeAct(event) {
  if (event.outcome === "blocked") return `${event.step}: has to wait`;
  if (event.outcome === "resumed") return `${event.step}: has it now`;
  return event.step;
}

function renderMap(situation) {
  const { race, variant } = view;
  const drawing = new MapDrawing(race, situation, view.newlySeen, openPath);
  const map = byId("map");
  map.replaceChildren(drawing.draw());
  map.scrollTop = drawing.here.y - map.clientHeight / 2;
  const total = variant.orders.length;
  const seen = seenOrders(race, variant);
  const badCount = seen.filter((order) => order.reason).length;
  const badPart = seen.length ? `, ${badCount} bad` : "";
  byId("count").textContent = `${seen.length} of ${total} seen${badPart}`;
  const remaining = total - seen.length;
  const label = seen.length ? `Try the other ${remaining}` : `Try all ${total}`;
  byId("all").replaceChildren(remaining ? button(label, "x", tryAll) : nextButton());
}

function renderList() {
  const { race, variant } = view;
  if (!byId("list").open) return;
  const head = make("tr", {}, columnHead("order"), columnHead("end"));
  const rows = variant.orders.map((order) => listRow(order, isSeen(race, variant, order.schedule)));
  const table = byId("list").querySelector("table");
  table.replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
}

function listRow(order, isKnown) {
  const choose = () => {
    openPath(order.path);
    byId("verdict").focus();
  };
  const attributes = { type: "button", class: "schedule", onclick: choose };
  const schedule = make("td", {}, make("button", attributes, order.schedule));
  if (!isKnown) return make("tr", {}, schedule, make("td", {}, "not seen yet"));
  return make("tr", {}, schedule, make("td", {}, mark(order.reason), order.reason ?? "holds"));
}

/** Show in the header and in the menu how much of all races the reader has solved. */
function renderProgress() {
  let solvedCount = 0;
  let total = 0;
  for (const option of byId("race").querySelectorAll("option")) {
    const entry = menuEntryOf(option.value);
    const solved = solvedVariants(entry).length;
    solvedCount += solved;
    total += entry.variants.length;
    option.textContent = menuText(entry, solved);
  }
  byId("progress").textContent = `You have solved ${solvedCount} of ${total} variants.`;
  setDisabled(byId("reset-progress"), progress.facts.size === 0);
}

function menuText(entry, solved) {
  if (solved === 0) return entry.title;
  if (solved === entry.variants.length) return `✓ ${entry.title}`;
  return `${entry.title} (${solved} of ${entry.variants.length})`;
}
