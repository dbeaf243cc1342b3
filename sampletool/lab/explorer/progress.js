/*
 * What the reader has seen and solved, for all races. The browser keeps it in its localStorage.
 *
 * Each fact has a key of its own. Writing one key is atomic, so two tabs with two races, or the
 * frames of two pages, do not lose each other's progress. One key with all facts would have to be
 * read, changed and written back: a lost update.
 */

const STORAGE_PREFIX = "tool-lab/";

const progress = {
  /** The keys. If the browser refuses to store them, they are only in memory. */
  facts: new Set(),

  load() {
    this.facts.clear();
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith(STORAGE_PREFIX)) this.facts.add(key);
      }
    } catch {
      // This browser stores nothing for this page. The progress lasts until the page is closed.
    }
  },

  has(...parts) {
    return this.facts.has(STORAGE_PREFIX + parts.join("/"));
  },

  add(...parts) {
    const key = STORAGE_PREFIX + parts.join("/");
    if (this.facts.has(key)) return;
    this.facts.add(key);
    try {
      localStorage.setItem(key, "1");
    } catch {
      // See load().
    }
  },

  reset() {
    try {
      for (const key of this.facts) localStorage.removeItem(key);
    } catch {
      // See load().
    }
    this.facts.clear();
  },
};

function isSeen(race, variant, schedule) {
  return progress.has("seen", race.name, variant.name, schedule);
}

function seenOrders(race, variant) {
  return variant.orders.filter((order) => isSeen(race, variant, order.schedule));
}

function unseenOrders(race, variant) {
  return variant.orders.filter((order) => !isSeen(race, variant, order.schedule));
}

/** Remember that the reader knows how this order ends, and whether the variant is solved now. */
function markSeen(race, variant, schedule) {
  progress.add("seen", race.name, variant.name, schedule);
  if (hasSolved(race, variant)) progress.add("solved", race.name, variant.name);
}

/** A fix is solved when every order was tried, and any other variant when it was broken once. */
function hasSolved(race, variant) {
  if (variant.isFix) return unseenOrders(race, variant).length === 0;
  return seenOrders(race, variant).some((order) => order.reason);
}

/** Return the solved variants of a race in the menu. Its recordings may be on another page. */
function solvedVariants(entry) {
  return entry.variants.filter((variant) => progress.has("solved", entry.name, variant));
}
