/** The source of a live page: the trace of a cluster as it grows, and what can be done to the cluster. */
import type { Batch, Dissection, Entry, Source } from "../data.ts";
import { actionsOf, type Status } from "./actions.ts";
import type { Control } from "./control.ts";

/** How long to wait before the stream is asked for again (milliseconds). */
const AGAIN_MS = 1_000;

export async function liveSource(title: string, control: Control, acts: boolean): Promise<Source> {
  const actions = acts ? actionsOf(control, await control.json<Status>("GET", "status")) : [];
  return {
    kind: "live",
    title,
    actions,
    start(tell, say) {
      const ended = new AbortController();
      void follow(control, tell, say, ended.signal);
      return () => ended.abort();
    },
    why: (group, number, isEpoch) =>
      control.text(`trace/why?${new URLSearchParams({ group, [isEpoch ? "epoch" : "generation"]: String(number) })}`),
    bytes: (seq) => control.json<Dissection | null>("GET", `page/bytes/${seq}`),
  };
}

/** Read the stream until `ended`; where it breaks off, go on behind the last entry. */
async function follow(control: Control, tell: (batch: Batch) => void, say: (problem: string) => void, ended: AbortSignal): Promise<void> {
  let last = "";
  while (!ended.aborted) {
    try {
      const headers = last ? { "Last-Event-ID": last } : {};
      const answer = await control.ask("GET", "trace/stream", undefined, { headers, signal: ended });
      say("");
      const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
      const parser = new EventParser();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        for (const batch of parser.read(value)) tell(batch);
        last = parser.lastId || last;
      }
    } catch (problem) {
      if (ended.aborted) return;
      say(`The cluster does not answer: ${(problem as Error).message}. Trying again.`);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Server-sent events, piece by piece: docs/control.md says which there are. */
export class EventParser {
  lastId = "";
  private rest = "";

  /** The batches in what has come. */
  read(text: string): Batch[] {
    const parts = (this.rest + text).split("\n\n");
    this.rest = parts.pop()!;
    const batches: Batch[] = [];
    let entries: Entry[] = [];
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.event === "start") {
        if (entries.length) batches.push({ entries });
        entries = [];
        const { start_ms } = JSON.parse(fields.data!) as { start_ms: number | null };
        batches.push({ header: { schema: "groupcoord-trace", version: 2, start_ms, dropped: {} }, entries: [] });
      } else if (fields.event === "entry") {
        entries.push(JSON.parse(fields.data!) as Entry);
        this.lastId = fields.id ?? this.lastId;
      }
    }
    if (entries.length) batches.push({ entries });
    return batches;
  }
}
