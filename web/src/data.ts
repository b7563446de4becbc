/** What a page is made of. `Header` and `Entry` are the lines of a saved trace, as docs/trace.md promises them. */

export interface Header {
  schema: string;
  version: number;
  /** The beginning, in milliseconds on the clock of the server; null if nothing has happened yet. */
  start_ms: number | null;
  /** How many entries of each type of event are missing, because they were too many. */
  dropped: Record<string, number>;
}

interface Cause {
  type: "Requested" | "TimerFired" | "AdminAction" | "BrokerTask" | "Answered";
  [field: string]: unknown;
}

/** Something that happened. Types of events that are not known are shown by their `text`. */
export interface Entry {
  seq: number;
  /** Milliseconds on the clock of the server. */
  at_ms: number;
  /** Milliseconds of the real world since the trace began. */
  real_ms: number;
  event: string;
  caused_by: number | null;
  answers: number | null;
  cause: Cause;
  fields: Record<string, unknown>;
  text: string;
}

/** One field of a message, as `groupcoord.dissect` tells it: bytes `start` to `end` (exclusive). */
export interface DissectedField {
  start: number;
  end: number;
  /** `topics[0].name` */
  path: string;
  type: string;
  /** Bytes are hexadecimal digits; of an array it is the number of its items. */
  value: string | number | boolean | null;
  /** What this value stands for, such as the name of an error; "" if it speaks for itself. */
  meaning: string;
  /** What the field is for, in the words of Kafka's message definitions. */
  description: string;
  /** The compressed field whose unpacked bytes `start` and `end` count; "" if they are those of the message. */
  inside: string;
}

/** The bytes of a request or an answer, field by field. */
export interface Dissection {
  title: string;
  size: number;
  fields: DissectedField[];
  /** Why the reading ended before the end. */
  problem: { offset: number; reason: string } | null;
}

/** Why one generation or epoch of a group began, in words of Python. */
export interface Why {
  group: string;
  number: number;
  /** An epoch of KIP-848, and no generation of the classic protocol. */
  is_epoch: boolean;
  /** The entry that says that it began. */
  seq: number;
  text: string;
}

/** What stands in a page beside the trace itself. */
export type PageData = SavedData | { kind: "live"; title: string; /** Can anything be done to the cluster, or only be seen? */ acts: boolean };

export interface SavedData {
  kind: "saved";
  title: string;
  why: Why[];
  /** The numbers of entries with the places of their dissections. */
  bytes: [number, number][];
  /** So many dissections stand together under a name, `bytes-0`, `bytes-1` … */
  bytes_part: number;
}

/** Some entries that follow those that were there before. With a `header` all before are forgotten: it is another trace. */
export interface Batch {
  header?: Header;
  entries: Entry[];
}

/** What an action has to be told. Groups, members (of the group that is shown), topics and brokers are chosen from those there are. */
export interface ActionField {
  name: string;
  label: string;
  kind: "text" | "number" | "group" | "member" | "topic" | "broker" | "choice";
  /** Of a choice: value and text. */
  choices?: [string, string][];
  /** The same, asked for when the form is opened. */
  load?(): Promise<[string, string][]>;
  initial?: string;
}

/** One thing a person can do to the cluster. What `run` rejects with is shown to the person. */
export interface Action {
  name: string;
  label: string;
  /** What it does, in a sentence. */
  about: string;
  fields: ActionField[];
  /** Why it cannot be done here and now; "" if it can. */
  disabled: string;
  /** Do it; what happened, in words. */
  run(values: Record<string, string>): Promise<string>;
}

/** Where a page gets its data: a saved file, a stream, or a cluster in the browser. */
export interface Source {
  kind: "saved" | "live" | "playground";
  title: string;
  /** Tell what there is and what follows, until the function that this returns is called. */
  start(tell: (batch: Batch) => void, say: (problem: string) => void): () => void;
  /** Why a generation or an epoch began; "" if nobody can say. */
  why(group: string, number: number, isEpoch: boolean): Promise<string>;
  /** The bytes of a request or an answer; null if there are none. */
  bytes(seq: number): Promise<Dissection | null>;
  actions: Action[];
}

/** The lines of a trace's file, or some of them; the header is the one that has a schema. */
export function parseLines(text: string): Batch {
  const batch: Batch = { entries: [] };
  for (const line of text.split("\n")) {
    if (!line) continue;
    const said = JSON.parse(line) as Header | Entry;
    if ("schema" in said) batch.header = said;
    else batch.entries.push(said);
  }
  return batch;
}

/** What Python put into the file under that name (gzip in base64: see groupcoord/page/html_embedding.py); null: nothing. */
export async function embedded(name: string): Promise<string | null> {
  const text = document.getElementById(`groupcoord-${name}`)?.textContent;
  if (!text) return null;
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place += 1) bytes[place] = letters.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
