// The theme draws diagrams with the global `mermaid`, and would fetch it from another host if it were not there.
if (document.querySelector(".mermaid")) {
  const address = new URL("mermaid.js", document.currentScript.src);
  document.write(`<script src="${address}"></script>`);
}
