/** The protocol's terms, explained where they stand: `<Term id="generation" />`. */
import parts from "../../../docs/glossary.json";
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";

/** `docs/glossary.json`: each term with its other names. */
const MEANINGS = new Map<string, string>();
for (const { terms } of parts as { terms: { term: string; also?: string[]; meaning: string }[] }[])
  for (const { term, also = [], meaning } of terms) for (const name of [term, ...also]) MEANINGS.set(name, meaning);

/** What a term means. Throws for one that the glossary does not have. */
export function meaningOf(term: string): string {
  const meaning = MEANINGS.get(term);
  if (meaning === undefined) throw new Error(`docs/glossary.json has no term ${term}`);
  return meaning;
}

export function Term({ id, children }: { id: string; children?: ComponentChildren }) {
  const note = useId();
  const button = useRef<HTMLButtonElement>(null);
  const [place, setPlace] = useState<{ left: number; top: number } | null>(null);
  const open = () => {
    const box = button.current?.getBoundingClientRect();
    if (box) setPlace({ left: Math.max(8, Math.min(box.left, innerWidth - 336)), top: box.bottom + 4 });
  };
  const close = () => setPlace(null);
  return (
    <span class="term" onMouseLeave={close}>
      <button
        ref={button}
        type="button"
        aria-expanded={place !== null}
        aria-controls={note}
        onClick={() => (place ? close() : open())}
        onMouseEnter={open}
        onBlur={close}
        onKeyDown={(event) => event.key === "Escape" && close()}
      >
        {children ?? id}
      </button>
      {place && (
        <span role="note" id={note} style={place}>
          {withCode(meaningOf(id))}
        </span>
      )}
    </span>
  );
}

function withCode(text: string): ComponentChildren {
  return text.split("`").map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part));
}
