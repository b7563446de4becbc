/** The groups by trouble: found by words, kind, state and problem, which the address of the page keeps. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Panel } from "../kit/panel.tsx";
import type { GroupSummary, Report, Vocabulary } from "./model.ts";
import { reasons } from "./sentences.ts";
import { groupName, type Anchors } from "./shared_tables.tsx";
import { Sources } from "./sources.tsx";
import { bars, count, figures, LeftOut, NoneOf, Table, text, time, words } from "./table.tsx";
import { amount, number, visible } from "./text.ts";

/** What groups have to be to be listed; "" where it does not matter. */
export interface GroupFilter {
  /** Words that all stand in the name, the kind, the state, the assignor, or what is wrong. */
  words: string;
  kind: string;
  state: string;
  /** The column of a symptom. */
  problem: string;
}

const FIELDS = ["words", "kind", "state", "problem"] as const;

function stateOf(group: GroupSummary): string {
  return group.state ?? "gone";
}

/** How many things that are wrong with a group stand in its row. */
const TOLD = 3;

function inWords(group: GroupSummary): string {
  return `${group.kind}, ${stateOf(group)}${group.members ? `, ${amount(group.members, "members")}` : ""}`;
}

/** Of `groups` those that fit, in their order; if it is about one problem, those with most points for it are first. */
export function filtered(groups: GroupSummary[], filter: GroupFilter, vocabulary: Vocabulary): GroupSummary[] {
  const wanted = filter.words.toLowerCase().split(/\s+/).filter(Boolean);
  const { kind, state, problem } = filter;
  const points = (group: GroupSummary) => group.points[problem] ?? 0;
  const found = groups.filter((group) => {
    if ((kind && group.kind !== kind) || (state && stateOf(group) !== state) || (problem && !points(group))) return false;
    if (!wanted.length) return true;
    const problems = vocabulary.symptoms.filter(({ column }) => group.points[column]).map(({ meaning }) => meaning);
    const said = [visible(group.group), group.kind, stateOf(group), group.protocol ?? "", ...problems].join(" ").toLowerCase();
    return wanted.every((word) => said.includes(word));
  });
  return problem ? found.sort((one, other) => points(other) - points(one)) : found;
}

function fromAddress(): GroupFilter {
  const said = new URLSearchParams(location.search);
  return Object.fromEntries(FIELDS.map((field) => [field, said.get(field) ?? ""])) as unknown as GroupFilter;
}

function keepInAddress(filter: GroupFilter): void {
  const said = new URLSearchParams(FIELDS.filter((field) => filter[field]).map((field) => [field, filter[field]]));
  history.replaceState(null, "", `${location.pathname}${said.size ? `?${said}` : ""}${location.hash}`);
}

export function GroupsPanel({ report, vocabulary, anchors }: { report: Report; vocabulary: Vocabulary; anchors: Anchors }) {
  const { groups } = report;
  const [filter, setFilter] = useState(fromAddress);
  const found = useMemo(() => filtered(groups, filter, vocabulary), [groups, filter, vocabulary]);
  const rows = useMemo(
    () => found.map((one) => [
      groupName(one.group, anchors), count(one.score, 1), text(reasons(one, vocabulary, TOLD)), text(inWords(one)), count(one.rebalances), count(one.lag), count(one.commits), time(one.last_ts),
    ]),
    [found, anchors, vocabulary],
  );
  const change = (field: keyof GroupFilter, value: string) => {
    const changed = { ...filter, [field]: value };
    setFilter(changed);
    keepInAddress(changed);
  };
  return (
    <Panel id="groups" title="Groups by health" aside={<Sources tables={{ Groups: ["group_health"] }} />}>
      <details>
        <summary>How the score is made</summary>
        <p>
          It says what to look at first. Each symptom gives its points times log₂(1 + how often it was seen), so that one of many kinds of trouble cannot hide the others; the score is their sum. It is a rule of thumb.
        </p>
        <Table
          caption="Points"
          columns={[words("Symptom"), figures("Seen once", "points"), figures("Three times", "points"), words("Counted in")]}
          rows={vocabulary.symptoms.map(({ meaning, points, table }) => [text(meaning), count(points), count(2 * points), { shown: <code>{table}</code>, value: table }])}
          isSortable={false}
        />
      </details>
      {groups.length ? (
        <>
          <Finder groups={groups} vocabulary={vocabulary} filter={filter} change={change} found={found.length} />
          <Table
            caption="Groups by health"
            class="wide"
            columns={[
              words("Group"), bars("Score", "points"), words("What is wrong"), words("State"), figures("Rebalances"), figures("Lag", "records"), figures("Commits"), words("Last seen", "UTC"),
            ]}
            rows={rows}
          />
        </>
      ) : (
        <NoneOf what="groups" />
      )}
      <LeftOut count={report.groups_left_out} what="groups with lower scores" table="group_health" />
    </Panel>
  );
}

interface FinderProps {
  groups: GroupSummary[];
  vocabulary: Vocabulary;
  filter: GroupFilter;
  change(field: keyof GroupFilter, value: string): void;
  found: number;
}

function Finder({ groups, vocabulary, filter, change, found }: FinderProps) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.altKey || event.metaKey || (event.target as Element).closest("input, select")) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const choices = (values: string[]): [string, string][] => [...new Set(values)].sort().map((value) => [value, value]);
  const problems = vocabulary.symptoms.filter(({ column }) => groups.some(({ points }) => points[column])).map(({ column, meaning }): [string, string] => [column, meaning]);
  return (
    <form class="finder" role="search" aria-label="Groups" onSubmit={(event) => event.preventDefault()}>
      <label>Find <input ref={field} type="search" size={28} value={filter.words} aria-keyshortcuts="/" placeholder="name, assignor, problem: /" onInput={(event) => change("words", event.currentTarget.value)} /></label>
      <Choice label="Kind" choices={choices(groups.map(({ kind }) => kind))} value={filter.kind} choose={(value) => change("kind", value)} />
      <Choice label="State" choices={choices(groups.map(stateOf))} value={filter.state} choose={(value) => change("state", value)} />
      <Choice label="Problem" choices={problems} value={filter.problem} choose={(value) => change("problem", value)} />
      <output>{number(found)} of {number(groups.length)} groups</output>
    </form>
  );
}

function Choice({ label, choices, value, choose }: { label: string; choices: [string, string][]; value: string; choose(value: string): void }) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        <option value="">any</option>
        {choices.map(([each, meaning]) => <option key={each} value={each}>{meaning}</option>)}
      </select>
    </label>
  );
}
