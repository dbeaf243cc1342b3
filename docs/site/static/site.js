// What a screen reader and a keyboard need, and the theme does not say.
const set = (selector, attributes) => {
  for (const element of document.querySelectorAll(selector)) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  }
};
// Of a terminal's lines: the commands, without their prompts.
const commands = (text) => {
  const typed = text.split("\n").filter((line) => /^[$>] ?/.test(line));
  return typed[0]?.startsWith("$") ? typed.map((line) => line.replace(/^[$>] ?/, "")).join("\n") : text;
};
const addCopyButton = (block) => {
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "Copy";
  button.onclick = async () => {
    const lines = block.querySelector("pre");
    try {
      await navigator.clipboard.writeText(commands(lines.textContent));
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(lines); // where a page from disk may not copy
    }
  };
  block.append(button);
};
addEventListener("DOMContentLoaded", () => {
  set(".caption[role=heading]", { "aria-level": "2" });
  set("aside.sidebar-drawer", { "aria-label": "All pages" });
  set("aside.toc-drawer", { "aria-label": "On this page" });
  set(".content-icon-container", { role: "region", "aria-label": "About this page" });
  set("pre, .table-wrapper", { tabindex: "0" });
  document.querySelectorAll(".highlight").forEach(addCopyButton);
});
