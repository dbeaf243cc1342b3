"use strict";

/*
 * The recorded runs. The explorer walks them and does not simulate anything: which steps are
 * possible, what they did and how a run ended was recorded from real processes.
 *
 * The recordings of a variant are a tree, see run_tree.py. A node has the events of the token that
 * leads to it, the next nodes by their tokens, and at an end the reason why the run is broken, or
 * null. A path is a list of tokens.
 */

const MAX_ANSWERS = 4;

function isStep(token) {
  return /^[A-Z]\d+$/.test(token);
}

/** Give the fields of a recorded node their names. */
function parseNode([eventIndexes, nextByToken, ...end]) {
  return { eventIndexes, nextByToken, isEnd: end.length === 1, reason: end[0] ?? null };
}

/**
 * Return the parts of a token that is a strike, or null for a step.
 *
 * `A!` is a strike before A's next step. `A2!3` is one in step 2, after 3 of its events.
 */
function parseStrike(token) {
  const match = token.match(/^(?<letter>[A-Z])\d*(?<kind>[^A-Z\d])(?<events>\d*)$/);
  if (!match) return null;
  return { token, ...match.groups };
}

function strikesAt(node) {
  return Object.keys(node.nextByToken).map(parseStrike).filter((strike) => strike !== null);
}

function strikeKinds(path) {
  return path.map((token) => parseStrike(token)?.kind ?? "").join("");
}

function unique(values) {
  return [...new Set(values)];
}

/** A variant of a race, with its tree of runs. */
class Variant {
  constructor(name, data) {
    this.name = name;
    this.data = data;
    this.nodes = data.nodes.map(parseNode);
    this.root = this.nodes[data.root];
    /** Each order: its path, the same as text, and the reason why it is broken, or null. */
    this.orders = this.listOrders(this.root, []);
    const tokens = unique(this.orders.flatMap((order) => order.path));
    this.letters = unique(tokens.map((token) => token[0])).sort();
    this.strikes = this.listStrikes(tokens);
  }

  get isFix() {
    return this.name.startsWith("fixed");
  }

  get badOrders() {
    return this.orders.filter((order) => order.reason);
  }

  listOrders(node, path) {
    if (node.isEnd) return [{ path, schedule: path.join(" "), reason: node.reason }];
    return Object.keys(node.nextByToken).flatMap((token) => {
      return this.listOrders(this.nextNode(node, token), [...path, token]);
    });
  }

  /** Return the worker and the kind of each strike that is possible somewhere. */
  listStrikes(tokens) {
    const strikes = new Map();
    for (const token of tokens) {
      const strike = parseStrike(token);
      if (!strike) continue;
      const { letter, kind } = strike;
      strikes.set(letter + kind, { letter, kind });
    }
    return [...strikes.values()];
  }

  nextNode(node, token) {
    return this.nodes[node.nextByToken[token]];
  }

  eventsOf(node) {
    return node.eventIndexes.map((index) => this.data.events[index]);
  }

  /** Return the part of a path that was recorded. */
  recordedPart(path) {
    const recorded = [];
    let node = this.root;
    for (const token of path) {
      if (!(token in node.nextByToken)) break;
      node = this.nextNode(node, token);
      recorded.push(token);
    }
    return recorded;
  }

  /**
   * Return what this worker does next, or null if it does nothing more.
   *
   * Who goes before does not matter: it is taken from the first recording in which the worker acts.
   */
  nextEventOf(letter, node) {
    for (const token of Object.keys(node.nextByToken)) {
      const next = this.nextNode(node, token);
      const ownEvent = this.eventsOf(next).find((event) => event.worker === letter);
      const found = ownEvent ?? this.nextEventOf(letter, next);
      if (found) return found;
    }
    return null;
  }

  stepTokenOf(letter, node) {
    return Object.keys(node.nextByToken).find((token) => token[0] === letter && isStep(token));
  }
}

/** The state of a run after some tokens. */
class Situation {
  constructor(variant, path) {
    this.variant = variant;
    this.path = path;
    this.node = variant.root;
    /** All events until now, and how many of them belong to the last token. */
    this.events = variant.eventsOf(this.node);
    this.newEvents = [];
    for (const token of path) {
      this.node = variant.nextNode(this.node, token);
      this.newEvents = variant.eventsOf(this.node);
      this.events = [...this.events, ...this.newEvents];
    }
    this.lastEvent = this.events.at(-1) ?? { state: variant.data.begins };
    this.stateBefore = this.events.at(-2)?.state ?? variant.data.begins;
    this.lockHolders = this.lastEvent.holds ?? [];
    this.waiting = this.lastEvent.waiting ?? [];
    /** The last event of each worker that has ended. */
    this.ended = new Map();
    for (const event of this.events) {
      if (event.over) this.ended.set(event.worker, event);
    }
  }

  get isAtEnd() {
    return this.node.isEnd;
  }

  get reason() {
    return this.node.reason;
  }

  get schedule() {
    return this.path.join(" ");
  }

  /** Return the event that this worker is about to cause, or null if it waits or has ended. */
  possibleStepOf(letter) {
    if (this.ended.has(letter) || this.waiting.includes(letter)) return null;
    const token = this.variant.stepTokenOf(letter, this.node);
    if (!token) return null;
    return this.variant.eventsOf(this.variant.nextNode(this.node, token))[0];
  }

  /** Return the event at whose line of the source this worker is, or null if it has ended. */
  positionOf(letter) {
    if (this.ended.has(letter)) return null;
    const ownEvents = this.events.filter((event) => event.worker === letter);
    return this.variant.nextEventOf(letter, this.node) ?? ownEvents.at(-1) ?? null;
  }

  /** Return the last line of the source at which this worker was, if there is one. */
  lastLineOf(letter) {
    const ownEvents = this.events.filter((event) => event.worker === letter);
    return ownEvents.findLast((event) => event.line !== undefined)?.line;
  }

  wasKilled(letter) {
    const event = this.ended.get(letter);
    return event !== undefined && event.outcome === "struck" && event.step.startsWith("kill");
  }

  /** Return the workers that this one waits for, as far as the recording says. */
  holdersFor(letter) {
    const holders = this.lockHolders.filter((each) => each !== letter);
    if (holders.length) return holders;
    const others = this.variant.letters.filter((each) => each !== letter && !this.ended.has(each));
    return others.length === 1 ? others : [];
  }
}
