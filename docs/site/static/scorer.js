// How the search of the site ranks its results. Sphinx calls these functions and reads these numbers.
//
// Sphinx declares the same variable with `var`, so `const` would be an error.
//
// A command, an option or an error comes before a page that only mentions it. By default, Sphinx
// ranks every title higher than a part of such a name. A title that is the whole query comes first.
var Scorer = {
  objNameMatch: 40,
  objPartialMatch: 30,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 42,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
