// The theme draws diagrams with the global `mermaid`, and would fetch it from another host if it were not there.
if (document.querySelector(".mermaid")) {
  const address = new URL("mermaid.js", document.currentScript.src);
  document.write(`<script src="${address}"></script><script>scrollIfNarrow(mermaid);</script>`);
}

// A diagram is as wide as its page; in a narrow window it scrolls instead, for so small it could not be read.
function scrollIfNarrow(mermaid) {
  const initialize = mermaid.initialize;
  mermaid.initialize = (options) =>
    initialize({ ...options, sequence: { ...options.sequence, useMaxWidth: window.innerWidth > 800 } });
}
