/* The map: all orders of a variant as a tree that grows to the right, one row for each order. */

const MAP_WIDTH = 320;
const MAP_MARGIN = 12;
const NARROWEST_COLUMN = 17;
const WIDEST_COLUMN = 52;
const SMALLEST_LETTER_RADIUS = 5.4;
const LONGEST_REVEAL_MS = 1200;
const LONGEST_DELAY_MS = 40;

/** Return the distances of the map, which get smaller if there are many orders. */
function mapSizes(variant) {
  const count = variant.orders.length;
  let row = 10;
  if (count <= 64) row = 15;
  if (count <= 24) row = 22;
  const depth = Math.max(...variant.orders.map((order) => order.path.length));
  const wantedColumn = (MAP_WIDTH - 2 * MAP_MARGIN) / (depth + 1);
  const column = Math.max(NARROWEST_COLUMN, Math.min(WIDEST_COLUMN, wantedColumn));
  return {
    row,
    column,
    radius: Math.min(8, row / 2.7, column / 2.6),
    width: 2 * MAP_MARGIN + (depth + 1) * column,
    height: MAP_MARGIN + 2 + count * row,
  };
}

/** Draws the map of one situation. `onChoose` is called with a path when the reader chooses one. */
class MapDrawing {
  constructor(race, situation, newlySeen, onChoose) {
    this.race = race;
    this.variant = situation.variant;
    this.path = situation.path;
    this.newlySeen = newlySeen;
    this.onChoose = onChoose;
    this.sizes = mapSizes(this.variant);
    this.knownBranches = this.listKnownBranches();
    this.nextRow = 0;
    this.edges = make("g", { class: "edges" });
    this.dots = make("g", { class: "dots" });
    /** Where the reader is. */
    this.here = { x: 0, y: 0 };
  }

  draw() {
    const { width, height, radius } = this.sizes;
    const rootY = this.drawBranch(this.variant.root, []);
    this.dots.append(make("circle", { class: "root", cx: MAP_MARGIN, cy: rootY, r: 3.5 }));
    const ring = make("circle", { class: "ring", cx: this.here.x, cy: this.here.y, r: radius + 3 });
    const attributes = { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" };
    attributes["aria-label"] = this.label();
    return make("svg", attributes, this.edges, this.dots, ring);
  }

  label() {
    const seen = seenOrders(this.race, this.variant);
    const badCount = seen.filter((order) => order.reason).length;
    const total = this.variant.orders.length;
    return `A tree of ${total} orders; ${seen.length} seen, ${badCount} of them bad.`;
  }

  /** Return the beginnings of all orders that the reader has seen or is looking at, as text. */
  listKnownBranches() {
    const paths = [this.path, ...seenOrders(this.race, this.variant).map((order) => order.path)];
    const branches = new Set();
    for (const path of paths) {
      path.forEach((_, index) => branches.add(path.slice(0, index + 1).join(" ")));
    }
    return branches;
  }

  isOnPath(path) {
    return path.every((token, index) => this.path[index] === token);
  }

  /** Draw everything behind a node. Return the height of the node. */
  drawBranch(node, path) {
    const x = MAP_MARGIN + path.length * this.sizes.column;
    const y = node.isEnd ? this.drawEnd(node, path, x) : this.drawChoices(node, path, x);
    if (path.length === this.path.length && this.isOnPath(path)) this.here = { x, y };
    return y;
  }

  drawEnd(node, path, x) {
    const { row, column } = this.sizes;
    const y = MAP_MARGIN + this.nextRow * row;
    this.nextRow += 1;
    const known = this.knownBranches.has(path.join(" ")) ? "known" : "";
    this.edges.append(make("path", { class: `edge ${known}`, d: `M${x} ${y}h${column * 0.75}` }));
    const order = { path, schedule: path.join(" "), reason: node.reason };
    const scale = Math.min(1, row / 15);
    const transform = `translate(${x + column * 0.75} ${y}) scale(${scale})`;
    this.dots.append(make("g", { transform }, this.endMark(order)));
    return y;
  }

  /** Draw the next tokens of a node, and what is behind them. Return the height of the node. */
  drawChoices(node, path, x) {
    const tokens = Object.keys(node.nextByToken);
    const heights = tokens.map((token) => {
      const next = this.variant.nextNode(node, token);
      return this.drawBranch(next, [...path, token]);
    });
    const y = (heights[0] + heights.at(-1)) / 2;
    tokens.forEach((token, index) => {
      this.drawToken([...path, token], { x, y }, heights[index]);
    });
    return y;
  }

  drawToken(path, from, height) {
    const { column, radius } = this.sizes;
    const token = path.at(-1);
    const known = this.knownBranches.has(path.join(" ")) ? "known" : "";
    const on = this.isOnPath(path) ? "on" : "";
    const kind = `${token[0]} ${known} ${on}`;
    const middle = from.x + column / 2;
    const end = from.x + column;
    const curve = `M${from.x} ${from.y}C${middle} ${from.y} ${middle} ${height} ${end} ${height}`;
    this.edges.append(make("path", { class: `edge ${kind}`, d: curve }));
    const attributes = {
      class: `dot ${kind}`,
      transform: `translate(${end} ${height})`,
      onclick: () => this.onChoose(path),
    };
    const title = make("title", {}, path.join(" "));
    const circle = make("circle", { r: radius });
    this.dots.append(make("g", attributes, title, circle, this.tokenText(token)));
  }

  tokenText(token) {
    const { radius } = this.sizes;
    if (radius <= SMALLEST_LETTER_RADIUS) return null;
    const text = parseStrike(token)?.kind ?? token[0];
    return make("text", { dy: ".34em", "font-size": radius * 1.25 }, text);
  }

  /** Return the mark of an order. A dashed circle is an order that the reader has not seen yet. */
  endMark(order) {
    const onclick = () => this.onChoose(order.path);
    if (!isSeen(this.race, this.variant, order.schedule)) {
      const title = make("title", {}, `${order.schedule}: not seen yet`);
      return make("g", { class: "end unseen", onclick }, title, make("circle", { r: 4 }));
    }
    const title = make("title", {}, `${order.schedule}: ${describeResult(order)}`);
    const kind = order.reason ? "bad" : "good";
    const group = make("g", { class: `end ${kind}`, onclick }, title, ...markParts(order.reason));
    this.revealLater(group, order);
    return group;
  }

  /** If the reader has just tried many orders, let their marks appear one after the other. */
  revealLater(group, order) {
    const index = this.newlySeen.indexOf(order.schedule);
    if (index < 0) return;
    const delay = Math.min(LONGEST_DELAY_MS, LONGEST_REVEAL_MS / this.variant.orders.length);
    group.classList.add("fresh");
    group.style.animationDelay = `${index * delay}ms`;
  }
}

function describeResult(order) {
  return order.reason ? `broke: ${order.reason}` : "holds";
}
