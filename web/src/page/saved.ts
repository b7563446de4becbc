/** The source of a page that Python made from a saved trace: everything is in the file. */
import { embedded, parseLines, type Dissection, type SavedData, type Source, type Why } from "../data.ts";

export function savedSource(data: SavedData): Source {
  const reasons = new Map(data.why.map((each) => [keyOf(each.group, each.number, each.is_epoch), each]));
  const places = new Map(data.bytes);
  return {
    kind: "saved",
    title: data.title,
    actions: [],
    start(tell, say) {
      let wanted = true;
      embedded("trace").then(
        (text) => wanted && tell(parseLines(text ?? "")),
        (problem: Error) => say(`the trace in this file cannot be read: ${problem.message}`),
      );
      return () => {
        wanted = false;
      };
    },
    why: async (group, number, isEpoch) => reasons.get(keyOf(group, number, isEpoch))?.text ?? "",
    bytes: (seq) => dissected(data, places, seq),
  };
}

function keyOf(group: string, number: Why["number"], isEpoch: boolean): string {
  return `${isEpoch ? "epoch" : "generation"} ${number} of ${group}`;
}

const parts = new Map<number, Promise<Dissection[]>>();

async function dissected(data: SavedData, places: Map<number, number>, seq: number): Promise<Dissection | null> {
  const place = places.get(seq);
  if (place === undefined) return null;
  const part = Math.floor(place / data.bytes_part);
  if (!parts.has(part)) parts.set(part, embedded(`bytes-${part}`).then((text) => JSON.parse(text ?? "[]")));
  return (await parts.get(part)!)[place % data.bytes_part] ?? null;
}
