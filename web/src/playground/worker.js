// Python in a worker: it gets the parts of Pyodide and of groupcoord, and then answers requests in JSON, one after the other.
// It is a module in a data URL, because a page that was opened from a file may start no other worker. Nothing is fetched.
// @ts-check

/** @typedef {{pyodide: Uint8Array, asm: Uint8Array, lock: Uint8Array, wasm: Uint8Array, stdlib: Uint8Array, app: Uint8Array, xxhash: Uint8Array}} Parts */

const text = (/** @type {Uint8Array} */ bytes) => new TextDecoder().decode(bytes);
const imported = (/** @type {Uint8Array} */ bytes) =>
  import(URL.createObjectURL(new Blob([/** @type {BlobPart} */ (bytes)], { type: "text/javascript" })));

async function start(/** @type {Parts} */ parts) {
  const files = new Map([
    ["pyodide.asm.wasm", new Response(/** @type {BodyInit} */ (parts.wasm), { headers: { "content-type": "application/wasm" } })],
    ["python_stdlib.zip", new Response(/** @type {BodyInit} */ (parts.stdlib))],
  ]);
  self.fetch = async (asked) => {
    const name = String(asked).split("/").pop() ?? "";
    const file = files.get(name);
    if (!file) throw new Error(`the playground fetches nothing, but was asked for ${asked}`);
    return file;
  };
  const { loadPyodide } = await imported(parts.pyodide);
  const { default: createPyodideModule } = await imported(parts.asm);
  const { info } = JSON.parse(text(parts.lock));
  const python = await loadPyodide({
    indexURL: "https://embedded.invalid/",
    createPyodideModule,
    lockFileContents: { info, packages: {} },
  });
  python.unpackArchive(parts.xxhash, "wheel");
  python.FS.writeFile("/app.zip", parts.app);
  return python.runPython(`
import sys
from asyncio import events
events._set_running_loop(None)  # that of the browser, which Pyodide says is always running: the playground runs its own
sys.path.insert(0, "/app.zip")
from groupcoord.playground.page_session import PageSession
PageSession().answer
`);
}

/** @type {Promise<(request: string) => string> | undefined} */
let answer;
self.onmessage = async ({ data }) => {
  try {
    if (data.parts) {
      answer = start(data.parts);
      await answer;
      self.postMessage({ id: 0, answer: "{}" });
    } else {
      self.postMessage({ id: data.id, answer: (await /** @type {NonNullable<typeof answer>} */ (answer))(data.request) });
    }
  } catch (error) {
    const lines = String(error).trim().split("\n"); // of a Python error the last one says what is wrong
    self.postMessage({ id: data.parts ? 0 : data.id, failure: lines.pop() });
  }
};
