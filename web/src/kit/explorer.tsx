/** The whole page for a source: what happened, moment by moment. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Source } from "../data.ts";
import { Controls } from "./controls.tsx";
import { Details } from "./details.tsx";
import "./explorer.css";
import { GroupPanel, StateBadge } from "./group.tsx";
import { LogView } from "./log.tsx";
import { History } from "./model/history.ts";
import { Sequence } from "./sequence.tsx";
import "./style.css";
import { Brokers, Deadlines, Topics } from "./tables.tsx";
import { ThemeToggle } from "./theme.tsx";
import { Timeline } from "./timeline.tsx";
import { Travel } from "./travel.tsx";
import type { View } from "./view.ts";

/** What came is drawn at most so often (milliseconds). */
const DRAW_EVERY_MS = 100;

interface ExplorerProps {
  source: Source;
  /** The group that is shown, until the person chooses another one. */
  focus?: string;
  /** Show requests of all groups, and of none, until the person wants those of one. */
  allGroups?: boolean;
  /** What stands in front of the panels, such as an editor. */
  children?: ComponentChildren;
}

export function Explorer({ source, focus = "", allGroups = false, children }: ExplorerProps) {
  const history = useRef(new History());
  const [, draw] = useState(0);
  const [moment, go] = useState<number | null>(null); // the number of the last entry that is shown; null: the newest
  const [selected, select] = useState<number | null>(null);
  const [wanted, showGroup] = useState("");
  const [problem, say] = useState("");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    history.current = new History();
    const stop = source.start(
      (batch) => {
        if (batch.header) {
          go(null);
          select(null);
        }
        history.current.add(batch);
        timer ??= setTimeout(() => {
          timer = undefined;
          draw((count) => count + 1);
        }, DRAW_EVERY_MS);
      },
      (text) => say(text),
    );
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [source]);
  useEffect(() => showGroup(focus), [focus]);
  const now = history.current;
  const count = moment === null ? now.entries.length : now.placeOf(moment + 1);
  const state = now.at(count);
  const groups = [...state.groups.values()];
  const group = state.groups.has(wanted) ? wanted : (groups.find((each) => each.members.size)?.name ?? groups[0]?.name ?? "");
  const view: View = { source, history: now, state, count, group, selected, select, showGroup };
  const top = useRef<HTMLElement>(null);
  const [topHeight, measure] = useState(0);
  useEffect(() => {
    const seen = new ResizeObserver(() => top.current && measure(top.current.offsetHeight));
    if (top.current) seen.observe(top.current);
    return () => seen.disconnect();
  }, []);
  return (
    <div class="explorer" style={{ "--top": `${topHeight}px` }}>
      <header class="top" ref={top}>
        <div class="title">
          <h1>{source.title}</h1>
          {source.kind !== "playground" && <span class={`badge ${source.kind === "live" ? "good" : ""}`}>{source.kind === "live" ? "● live" : source.kind}</span>}
          {problem && <span class="badge warn" role="status">{problem}</span>}
          {dropped(now) > 0 && <span class="quiet">{dropped(now).toLocaleString("en")} older entries are not kept</span>}
          <ThemeToggle />
        </div>
        <Travel view={view} follows={moment === null} go={(place) => go(now.entries[place - 1]?.seq ?? 0)} follow={() => go(null)} />
        {groups.length > 1 && (
          <nav aria-label="Groups" class="groups">
            {groups.map((each) => (
              <button key={each.name} type="button" aria-pressed={each.name === group} onClick={() => showGroup(each.name)}>
                {each.name} <StateBadge group={each} />
              </button>
            ))}
          </nav>
        )}
      </header>
      {children}
      <main class="panels">
        <div class="wide">
          <GroupPanel view={view} />
          <Timeline view={view} />
          <Sequence view={view} allGroups={allGroups} />
        </div>
        <div class="side">
          <Details view={view} />
          <Controls view={view} />
          <Deadlines view={view} />
          <Topics view={view} />
          <LogView view={view} />
          <Brokers view={view} />
        </div>
      </main>
    </div>
  );
}

function dropped(history: History): number {
  return history.cut + Object.values(history.header?.dropped ?? {}).reduce((sum, count) => sum + count, 0);
}
