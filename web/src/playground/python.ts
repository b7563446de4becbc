/** Python in a worker: groupcoord answers requests in JSON, as groupcoord/playground/page_session.py says. */
import source from "./worker.js?raw";

const PARTS = ["pyodide", "asm", "lock", "wasm", "stdlib", "app", "xxhash"] as const;

export class Python {
  private worker: Worker | null = null;
  private waiting = new Map<number, { resolve: (answer: string) => void; reject: (error: Error) => void }>();
  private asked = 0;

  /** Load it; `say` is told how far it is. Rejects if that cannot be. */
  async start(say: (progress: string) => void): Promise<void> {
    say("Unpacking Python …");
    const unpacked = await Promise.all(PARTS.map(async (name) => [name, await bytesOf(name)] as const));
    say("Starting Python and the coordinator …");
    // Of all workers only one in a data URL may be started by a page that was opened from a file.
    const worker = new Worker(`data:text/javascript,${encodeURIComponent(source)}`, { type: "module" });
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<{ id: number; answer?: string; failure?: string }>) => {
      const wait = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if (data.failure === undefined) wait?.resolve(data.answer ?? "{}");
      else wait?.reject(new Error(data.failure));
    };
    const parts = Object.fromEntries(unpacked);
    const started = this.answerTo(0);
    worker.onerror = () => this.fail("the browser does not start the worker that Python needs");
    worker.postMessage(
      { parts },
      unpacked.map(([, bytes]) => bytes.buffer),
    );
    await started;
  }

  /** The answer to a request. Rejects with what the coordinator or the playground refuses, in words. */
  async ask<T>(request: { ask: string; [argument: string]: unknown }): Promise<T> {
    const id = ++this.asked;
    this.worker!.postMessage({ id, request: JSON.stringify(request) });
    const answer = JSON.parse(await this.answerTo(id)) as T & { error?: string };
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  }

  private answerTo(id: number): Promise<string> {
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  private fail(problem: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(problem));
    this.waiting.clear();
  }
}

async function bytesOf(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const element = document.getElementById(`groupcoord-${name}`);
  if (!element?.textContent) throw new Error(`this file has no Python in it: it is built with \`make playground\``);
  const packed = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
  element.remove(); // megabytes that nobody needs any more
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
