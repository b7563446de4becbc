/** The slider through time: which entry is the last one that is shown. */
import { useMemo } from "preact/hooks";
import { NEWS } from "./group.tsx";
import { counted, type View } from "./view.ts";

interface TravelProps {
  view: View;
  /** Show the newest entry, and those that come. */
  follows: boolean;
  /** Show the first `count` entries. */
  go(count: number): void;
  follow(): void;
}

export function Travel({ view, follows, go, follow }: TravelProps) {
  const { history, count } = view;
  const all = history.entries.length;
  const marks = useMemo(() => marksOf(view, all), [history.version, view.group]);
  const entry = history.entries[count - 1];
  const at = entry ? history.moment(entry.at_ms) : "0.0 s";
  const jump = (step: 1 | -1) => {
    for (let place = count - 1 + step; place >= 0 && place < all; place += step) {
      const there = history.entries[place]!;
      if (NEWS.has(there.event) && (!view.group || there.fields.group === view.group)) {
        go(place + 1);
        view.select(there.seq);
        return;
      }
    }
    if (step > 0) follow();
    else go(Math.min(1, all));
  };
  return (
    <div class="travel">
      <button type="button" onClick={() => jump(-1)} title="To the change before"><span aria-hidden="true">◂</span> Back</button>
      <div class="slider">
        <svg aria-hidden="true" width="100%" height="10" preserveAspectRatio="none" viewBox="0 0 1000 10">
          {marks.map(([x, kind]) => <rect key={x} class={kind} x={x} y={kind === "rebalance" ? 0 : 5} width="2" height={kind === "rebalance" ? 10 : 5} />)}
        </svg>
        <input
          type="range"
          min={Math.min(1, all)}
          max={all}
          value={count}
          aria-label="The moment that is shown"
          aria-valuetext={`${at}, entry ${count} of ${all}`}
          onInput={(event) => go(Number(event.currentTarget.value))}
        />
      </div>
      <button type="button" onClick={() => jump(1)} title="To the next change">Next <span aria-hidden="true">▸</span></button>
      <output class="now"><b>{at}</b> <small>{count.toLocaleString("en")} of {counted(all, "entry").replace("entrys", "entries")}</small></output>
      <button type="button" aria-pressed={follows} onClick={follow}>{view.source.kind === "saved" ? "To the end" : "Live"}</button>
    </div>
  );
}

/** Where something happened to the group: at most one mark for each thousandth of the way. */
function marksOf(view: View, all: number): [number, "change" | "rebalance"][] {
  const marks = new Map<number, "change" | "rebalance">();
  view.history.entries.forEach((entry, place) => {
    if (!NEWS.has(entry.event) || (view.group && entry.fields.group !== view.group)) return;
    const x = Math.round((1000 * (place + 1)) / all / 2) * 2;
    const begins = entry.event === "coordinator.RebalanceStarted" || entry.event === "coordinator.GroupEpochBumped";
    if (begins || !marks.has(x)) marks.set(x, begins ? "rebalance" : "change");
  });
  return [...marks];
}
