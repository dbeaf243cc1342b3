// What a screen reader and a keyboard need, and the theme does not say.
const set = (selector, attributes) => {
  for (const element of document.querySelectorAll(selector)) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  }
};
addEventListener("DOMContentLoaded", () => {
  set(".caption[role=heading]", { "aria-level": "2" });
  set("aside.sidebar-drawer", { "aria-label": "All pages" });
  set("aside.toc-drawer", { "aria-label": "On this page" });
  set(".content-icon-container", { role: "region", "aria-label": "About this page" });
  set("pre, .table-wrapper", { tabindex: "0" });
});
