/*
 * What the reader can do: by buttons, by keys, and by the address of the page.
 *
 * A function that the reader can cause changes `view`, and then calls `show`.
 */

const POWER_CUT = "*";
const STRIKE_KEYS = { "!": "k", "~": "t", [POWER_CUT]: "p" };
const ADDRESS_DELAY_MS = 200;

/** The data is in the page itself, or a script before this one has loaded it. */
const DATA = window.explorerData ?? JSON.parse(byId("data").textContent);
/** The way to the folder with the files of the explorer, or "" if there is only this file. */
const ROOT = document.body.dataset.root;

/** What the reader is looking at. */
const view = {
  race: null,
  variant: null,
  path: [],
  /** What the reader answered, or null. */
  guess: null,
  /** The schedules that the reader has just tried all at once. */
  newlySeen: [],
};
const races = new Map();
let typedNumber = "";
let addressTimer = null;

function menuEntryOf(name) {
  return DATA.menu.find((entry) => entry.name === name);
}

/** Return a race whose recordings this page has, or the first one. */
function raceNamed(name) {
  const scenario = DATA.scenarios.find((each) => each.name === name) ?? DATA.scenarios[0];
  if (!races.has(scenario.name)) {
    const entries = Object.entries(scenario.ways);
    const variants = entries.map(([variant, data]) => new Variant(variant, data));
    races.set(scenario.name, { ...scenario, variants });
  }
  return races.get(scenario.name);
}

/** The page asks how a run ended, unless the reader knows it already. */
function isAsking(situation) {
  return situation.isAtEnd && !isSeen(view.race, view.variant, situation.schedule);
}

// What the reader does

/** Show a variant of a race, from its beginning or after some tokens. */
function openVariant(name, variantName, path = []) {
  view.race = raceNamed(name);
  const { variants } = view.race;
  view.variant = variants.find((each) => each.name === variantName) ?? variants[0];
  buildPanels();
  openPath(view.variant.recordedPart(path));
}

/** Show the run after these tokens. If it ends there, ask first, or show the end at once. */
function openPath(path, { isEndShown = !byId("ask").checked } = {}) {
  view.path = path;
  view.guess = null;
  const situation = new Situation(view.variant, path);
  if (situation.isAtEnd && isEndShown) markSeen(view.race, view.variant, situation.schedule);
  show();
  if (situation.isAtEnd) byId("verdict").scrollIntoView({ block: "nearest" });
}

function show() {
  renderPanels();
  writeAddressSoon();
}

function undo() {
  openPath(view.path.slice(0, -1));
}

function startAgain() {
  openPath([]);
}

function takeTurn(letter) {
  const situation = new Situation(view.variant, view.path);
  const token = view.variant.stepTokenOf(letter, situation.node);
  if (token) openPath([...view.path, token]);
  else say(`${letter} ${statusOf(letter, situation)}. It cannot continue now.`);
}

/** Strike before the next step of a worker or, if `events` is given, within it after so many. */
function strike(kind, events = "") {
  const { node } = new Situation(view.variant, view.path);
  const found = strikesAt(node).find((each) => each.kind === kind && each.events === events);
  if (found) openPath([...view.path, found.token]);
  else say(`It is not possible to use ${DATA.strikes[kind]} here.`);
}

function answer(text) {
  if (!isAsking(new Situation(view.variant, view.path))) return;
  view.guess = text;
  markSeen(view.race, view.variant, view.path.join(" "));
  show();
  byId("verdict").scrollIntoView({ block: "nearest" });
}

/** Show an order that breaks: rather a new one, and one that begins as the current one does. */
function showBadOrder() {
  const { race, variant } = view;
  const { badOrders } = variant;
  if (badOrders.length === 0) {
    say(`There is none: ${variant.orders.length} orders were run, and each of them held.`);
    return;
  }
  const current = view.path.join(" ");
  const rank = (order) => {
    const isKnown = isSeen(race, variant, order.schedule);
    const isElsewhere = !order.schedule.startsWith(current);
    return 1000 * (2 * Number(isKnown) + Number(isElsewhere)) + order.path.length;
  };
  const [best] = [...badOrders].sort((one, other) => rank(one) - rank(other));
  openPath(best.path, { isEndShown: true });
}

function tryAll() {
  const { race, variant } = view;
  view.newlySeen = unseenOrders(race, variant).map((order) => order.schedule);
  for (const schedule of view.newlySeen) markSeen(race, variant, schedule);
  show();
  view.newlySeen = [];
}

/** Return the next variant of this race, or the first one of the next race. */
function nextVariant() {
  const entry = menuEntryOf(view.race.name);
  const following = entry.variants[entry.variants.indexOf(view.variant.name) + 1];
  if (following) return { entry, variant: following };
  const nextEntry = DATA.menu[(DATA.menu.indexOf(entry) + 1) % DATA.menu.length];
  return { entry: nextEntry, variant: nextEntry.variants[0] };
}

function openNext() {
  const { entry, variant } = nextVariant();
  openRace(entry, variant);
}

/** Open a race here if this page has its recordings, or else on its own page. */
function openRace(entry, variantName) {
  const isHere = DATA.scenarios.some((scenario) => scenario.name === entry.name);
  if (isHere) openVariant(entry.name, variantName);
  else location.assign(ROOT + entry.page);
}

function resetProgress() {
  progress.reset();
  startAgain();
  say("This browser has forgotten the progress of all races.");
}

async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`${what} has been copied.`);
  } catch {
    // A browser may refuse this to a page that was opened from disk.
    getSelection().selectAllChildren(byId("command"));
    say("The browser does not allow copying. The command is selected instead.");
  }
}

// The address: #race/variant/A1.B1.A!

function currentAddress() {
  return [view.race.name, view.variant.name, view.path.join(".")].join("/").replace(/\/$/, "");
}

function addressInBar() {
  return decodeURIComponent(location.hash.slice(1));
}

function openAddress() {
  const address = addressInBar() || document.body.dataset.start;
  const [name, variant, path = ""] = address.split("/");
  openVariant(name, variant, path.split("."));
}

/** Write the address after several quick steps, because browsers refuse to change it very often. */
function writeAddressSoon() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => {
    if (addressInBar() !== currentAddress()) history.replaceState(null, "", `#${currentAddress()}`);
  }, ADDRESS_DELAY_MS);
}

/** Return the address of the current order: a page of its own if it has one. */
function addressToShare() {
  const { page, pages = {} } = menuEntryOf(view.race.name);
  const ownPage = pages[currentAddress()];
  if (ownPage) return new URL(ROOT + ownPage, location.href).href;
  const racePage = page ? ROOT + page : "";
  return new URL(`${racePage}#${currentAddress()}`, location.href).href;
}

// The keys

const KEY_ACTIONS = {
  u: undo,
  backspace: undo,
  r: startAgain,
  s: showBadOrder,
  x: tryAll,
  n: openNext,
};

/** Return the function that a key calls now, or null. `number` was typed before it. */
function actionFor(key, number) {
  const { variant, race } = view;
  const letter = key.toUpperCase();
  if (variant.letters.includes(letter)) return () => takeTurn(letter);
  const struck = variant.strikes.find((each) => STRIKE_KEYS[each.kind] === key);
  if (struck) return () => strike(struck.kind, number);
  const situation = new Situation(variant, view.path);
  if (isAsking(situation)) {
    const chosen = possibleAnswers(race, situation)[key - 1];
    if (key === "0") return () => answer(null);
    if (chosen) return () => answer(chosen);
  }
  return Object.hasOwn(KEY_ACTIONS, key) ? KEY_ACTIONS[key] : null;
}

function pressKey(event) {
  const hasModifier = event.ctrlKey || event.altKey || event.metaKey;
  if (hasModifier || event.target.closest("select") || !byId("keys").checked) return;
  const key = event.key.toLowerCase();
  const number = typedNumber;
  typedNumber = /^\d$/.test(key) ? typedNumber + key : "";
  const action = actionFor(key, number);
  if (!action) return;
  action();
  event.preventDefault();
}

// The beginning

function buildMenu() {
  const groups = new Map();
  for (const entry of DATA.menu) {
    if (!groups.has(entry.level)) groups.set(entry.level, make("optgroup", { label: entry.level }));
    groups.get(entry.level).append(make("option", { value: entry.name }));
  }
  byId("race").append(...groups.values());
  byId("choice").hidden = DATA.menu.length === 1;
  byId("race").addEventListener("change", (event) => openRace(menuEntryOf(event.target.value)));
}

function buildHelp() {
  const strikeKeys = Object.entries(STRIKE_KEYS).map(([kind, key]) => [key, DATA.strikes[kind]]);
  const keys = [
    ["a b c", "this worker takes its next step"],
    ...strikeKeys,
    ["3 k", "kill within the next step, after 3 events"],
    ["u", "undo"],
    ["r", "start again"],
    ["s", "show me a bad one"],
    ["1 to 4", "answer"],
    ["x", "try all orders"],
    ["n", "next variant or race"],
  ];
  for (const [key, text] of keys) {
    byId("help").append(make("div", {}, make("dt", {}, keyCap(key)), make("dd", {}, text)));
  }
}

function listen() {
  byId("copy-command").onclick = () => copyText(replayCommand(), "The command");
  byId("copy-address").onclick = () => copyText(addressToShare(), "The address");
  byId("reset-progress").onclick = resetProgress;
  byId("list").addEventListener("toggle", renderList);
  addEventListener("keydown", pressKey);
  addEventListener("hashchange", () => {
    if (![currentAddress(), ""].includes(addressInBar())) openAddress();
  });
  addEventListener("beforeprint", () => {
    byId("list").open = true;
    renderList();
  });
  // Another tab or frame of this browser has changed the progress.
  addEventListener("storage", () => {
    progress.load();
    renderPanels();
  });
}

/**
 * Inside another page, tell it how high this one is, so that nothing has to scroll in the frame.
 *
 * That page answers with the mode that it is in: "light", "dark" or "auto".
 */
function adaptToFrame() {
  document.documentElement.classList.add("framed");
  const reportHeight = () => {
    const { height } = document.body.getBoundingClientRect();
    parent.postMessage({ explorerHeight: Math.ceil(height) }, "*");
  };
  new ResizeObserver(reportHeight).observe(document.body);
  addEventListener("message", (event) => {
    if (event.source === parent) document.documentElement.dataset.theme = event.data.theme;
  });
}

function begin() {
  if (self !== top) adaptToFrame();
  progress.load();
  buildMenu();
  buildHelp();
  listen();
  document.querySelector("main").hidden = false;
  openAddress();
}

begin();
