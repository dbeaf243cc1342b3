// Additions to the theme: names for screen readers, access by keyboard, copy buttons, and frames.

const FRAME_BORDERS = 2;
const LONG_NAME_CHARACTERS = 15;
const BREAKS = /(?<=\/)|(?<=\.)(?!\w{1,5}$)|(?<=[A-Za-z0-9]_)(?=[A-Za-z0-9])/;

const setAttributes = (selector, attributes) => {
  for (const element of document.querySelectorAll(selector)) {
    for (const [name, value] of Object.entries(attributes)) {
      element.setAttribute(name, value);
    }
  }
};

// Return what a reader wants to copy. In a terminal session, this is the commands: without their
// prompts, and without the output.
const textToCopy = (text) => {
  if (!text.startsWith("$ ")) {
    return text;
  }
  const isTyped = (line) => line.startsWith("$ ") || line.startsWith("> ") || line === ">";
  const typedLines = text.split("\n").filter(isTyped);
  return typedLines.map((line) => line.slice(2)).join("\n");
};

const addCopyButton = (block) => {
  const button = document.createElement("button");
  button.className = "copy";
  button.textContent = "Copy";
  button.onclick = async () => {
    const code = block.querySelector("pre");
    try {
      await navigator.clipboard.writeText(textToCopy(code.textContent));
      button.textContent = "Copied";
    } catch {
      // A browser may refuse this to a page that was opened from disk. Select the text instead.
      getSelection().selectAllChildren(code);
    }
  };
  block.append(button);
};

// Let a long path or name in a table break after "/", "." and "_", but not before the end of a file
// name, such as "py". Otherwise, it would squeeze the sentences in the next column.
const letLongNamesBreak = () => {
  for (const word of document.querySelectorAll("table.docutils td .pre")) {
    const parts = word.textContent.split(BREAKS);
    if (word.textContent.length >= LONG_NAME_CHARACTERS && parts.length > 1) {
      const nodes = parts.flatMap((part) => [part, document.createElement("wbr")]);
      word.classList.add("breakable");
      word.replaceChildren(...nodes.slice(0, -1));
    }
  }
};

// Make a frame with the explorer as high as the page inside it, so that nothing has to scroll there.
// Answer with the mode that the reader has chosen for the site.
const adaptFrame = (event) => {
  const frames = [...document.querySelectorAll("iframe.explorer")];
  const frame = frames.find((each) => each.contentWindow === event.source);
  if (frame && event.data.explorerHeight) {
    frame.style.height = `${event.data.explorerHeight + FRAME_BORDERS}px`;
    sendTheme(frame);
  }
};

const sendTheme = (frame) => {
  frame.contentWindow.postMessage({ theme: document.body.dataset.theme }, "*");
};

const sendThemeToAll = () => {
  document.querySelectorAll("iframe.explorer").forEach(sendTheme);
};

addEventListener("message", adaptFrame);

addEventListener("DOMContentLoaded", () => {
  // The theme writes the chosen mode into this attribute.
  new MutationObserver(sendThemeToAll).observe(document.body, { attributeFilter: ["data-theme"] });
  letLongNamesBreak();
  setAttributes(".caption[role=heading]", { "aria-level": "2" });
  setAttributes("aside.sidebar-drawer", { "aria-label": "All pages" });
  setAttributes("aside.toc-drawer", { "aria-label": "On this page" });
  setAttributes(".content-icon-container", { role: "region", "aria-label": "About this page" });
  setAttributes("pre, .table-wrapper", { tabindex: "0" });
  document.querySelectorAll(".highlight").forEach(addCopyButton);
});
