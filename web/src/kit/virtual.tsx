/** A list of any length: only the rows in sight are in the document. Arrow keys move, the row that they reach is chosen. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

interface VirtualListProps {
  label: string;
  count: number;
  /** Pixels. */
  rowHeight: number;
  /** Its text is what a screen reader says. */
  row(place: number): ComponentChildren;
  rowClass?(place: number): string;
  /** The place of the chosen row, -1 for none. */
  chosen: number;
  choose(place: number): void;
  /** Stay at the end when rows are added there, unless the person has scrolled away from it. */
  followsEnd?: boolean;
  head?: ComponentChildren;
  empty: string;
}

const SPARE = 8;

export function VirtualList(props: VirtualListProps) {
  const { label, count, rowHeight, row, rowClass, chosen, choose, followsEnd = false, head, empty } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(400);
  useEffect(() => {
    const seen = new ResizeObserver(() => box.current && setHeight(box.current.clientHeight));
    if (box.current) seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (element && followsEnd && atEnd.current) {
      element.scrollTop = element.scrollHeight;
      setTop(element.scrollTop);
    }
  }, [count, followsEnd, height]);
  const scrolled = () => {
    const element = box.current!;
    atEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - 2 * rowHeight;
    setTop(element.scrollTop);
  };
  const reveal = (place: number) => {
    const element = box.current!;
    const headHeight = (element.firstElementChild as HTMLElement | null)?.dataset.head ? (element.firstElementChild as HTMLElement).offsetHeight : 0;
    const from = place * rowHeight;
    if (from < element.scrollTop) element.scrollTop = from;
    else if (from + rowHeight > element.scrollTop + element.clientHeight - headHeight)
      element.scrollTop = from + rowHeight - element.clientHeight + headHeight;
  };
  const keyed = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / rowHeight) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    const step = steps[event.key];
    if (step === undefined || !count) return;
    event.preventDefault();
    const from = chosen < 0 ? (step > 0 ? -1 : count) : chosen;
    const place = Math.max(0, Math.min(count - 1, from + step));
    choose(place);
    reveal(place);
  };
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + SPARE);
  const places = Array.from({ length: Math.max(0, last - first) }, (_, index) => first + index);
  return (
    <div
      ref={box}
      class="virtual"
      role="listbox"
      aria-label={label}
      tabIndex={0}
      aria-activedescendant={chosen >= first && chosen < last ? `${id}-${chosen}` : undefined}
      onScroll={scrolled}
      onKeyDown={keyed}
    >
      {head && <div class="virtual-head" data-head="1" aria-hidden="true">{head}</div>}
      {count === 0 && <p class="quiet" role="presentation">{empty}</p>}
      <div role="presentation" style={{ height: `${count * rowHeight}px`, position: "relative" }}>
        {places.map((place) => (
          <div
            key={place}
            id={`${id}-${place}`}
            role="option"
            aria-selected={place === chosen}
            aria-posinset={place + 1}
            aria-setsize={count}
            class={`row ${rowClass?.(place) ?? ""}`}
            style={{ top: `${place * rowHeight}px`, height: `${rowHeight}px` }}
            onClick={() => choose(place)}
          >
            {row(place)}
          </div>
        ))}
      </div>
    </div>
  );
}
