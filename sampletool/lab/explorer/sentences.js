/* The sentences that the page says about a situation. A screen reader reads them aloud. */

function joinWords(words, conjunction) {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${conjunction} ${words.at(-1)}`;
}

/** Add the period if it is missing. The first letter stays, because it may be of a file name. */
function asSentence(text) {
  return text.endsWith(".") ? text : `${text}.`;
}

function capitalized(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Return what a worker is doing, in a few words. */
function statusOf(letter, situation) {
  if (situation.wasKilled(letter)) return "was killed";
  if (situation.ended.has(letter)) return "has finished";
  if (situation.waiting.includes(letter)) {
    const holders = situation.holdersFor(letter);
    return holders.length ? `waits for ${joinWords(holders, "and")}` : "waits";
  }
  const step = situation.possibleStepOf(letter);
  if (step) return `next: ${step.step}`;
  return situation.isAtEnd ? "is stopped" : "has its turn later";
}

/** Return how the run ended. */
function outcomeOf(race, situation) {
  return situation.reason ?? race.promise;
}

/** Return what the last token did, and what is possible now. */
function describeSituation(race, situation, { isEndHidden }) {
  const sentences = [describeLastToken(situation)];
  for (const event of situation.newEvents) sentences.push(...describeEvent(event, situation));
  if (isEndHidden) {
    const count = possibleAnswers(race, situation).length;
    sentences.push(`No worker can continue. How did it end? Choose an answer, 1 to ${count}.`);
    return sentences.join(" ");
  }
  const shared = race.shared.replace(/^the /, "The ");
  sentences.push(`${shared}: ${situation.lastEvent.state}.`);
  if (situation.lastEvent.note) sentences.push(asSentence(capitalized(situation.lastEvent.note)));
  sentences.push(situation.isAtEnd ? describeEnd(race, situation) : describeChoices(situation));
  return sentences.join(" ");
}

function describeLastToken(situation) {
  const count = situation.path.length;
  return count ? `Step ${count}, ${situation.path.at(-1)}.` : "Nothing has happened yet.";
}

function describeEvent(event, situation) {
  const sentences = [`${event.worker}: ${describeStep(event, situation)}.`];
  if (event.over && event.outcome !== "struck") sentences.push(`${event.worker} has finished.`);
  return sentences;
}

function describeStep(event, situation) {
  if (event.outcome === "blocked") return `${event.step}, and ${statusOf(event.worker, situation)}`;
  if (event.outcome === "resumed") return `${event.step}, has it now`;
  return event.step;
}

function describeEnd(race, situation) {
  if (situation.reason) return `It broke: ${asSentence(situation.reason)}`;
  return `It holds: ${asSentence(race.promise)}`;
}

function describeChoices(situation) {
  const choices = [];
  for (const letter of situation.variant.letters) {
    const step = situation.possibleStepOf(letter);
    if (step) choices.push(`${letter} (${step.step})`);
  }
  return `Possible now: ${joinWords(choices, "or")}.`;
}

function describeAllOrders(count) {
  return count === 1 ? "the only order of these steps" : `all ${count} orders of these steps`;
}

/** Return what the reader should do in this variant. */
function describeTask(race, variant) {
  const badCount = variant.badOrders.length;
  if (variant.isFix) {
    const orders = describeAllOrders(variant.orders.length);
    if (!hasSolved(race, variant)) return `Try to break the fix. To solve it, run ${orders}.`;
    if (badCount) return `You ran ${orders}, and ${badCount} of them break it.`;
    return `You ran ${orders}. None of them breaks it.`;
  }
  const found = seenOrders(race, variant).filter((order) => order.reason).length;
  if (found) return `You broke it. You have found ${found} of the ${badCount} bad orders.`;
  if (variant.name === "naive") return "Your task: find an order that breaks it.";
  return "This is a wrong fix. Your task: find an order that breaks it anyway.";
}

/**
 * Return the ends that the reader can choose from, with the right one among them.
 *
 * Only ends after the same strikes are plausible. Those of this variant come first.
 */
function possibleAnswers(race, situation) {
  const kinds = strikeKinds(situation.path);
  const reasonsOf = (variant) => {
    const similar = variant.badOrders.filter((order) => strikeKinds(order.path) === kinds);
    return similar.map((order) => order.reason);
  };
  const answers = [
    race.promise,
    outcomeOf(race, situation),
    ...reasonsOf(situation.variant),
    ...race.variants.flatMap(reasonsOf),
  ];
  return unique(answers).slice(0, MAX_ANSWERS).sort();
}
