/** Tables that sort by any column, a page of rows at a time, and the parts that their cells are made of. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { duration, isoTime, moment, number, shortened, singular, UNKNOWN, visible } from "./text.ts";

export interface Column {
  title: string;
  unit?: string;
  isNumber?: boolean;
  bar?: BarOptions;
}

/** A bar beside each number compares it with the other rows. `highest` is the longest bar if no row has more; `mark` draws a line. */
interface BarOptions {
  highest?: number;
  mark?: number;
}

/** What a cell shows, and what its column is sorted by. */
export interface Cell {
  shown: ComponentChildren;
  value: string | number | null;
  /** The colour of its bar. */
  fill?: string;
}

interface TableProps {
  caption: string;
  columns: Column[];
  rows: Cell[][];
  isSortable?: boolean;
  class?: string;
}

export const words = (title: string, unit = ""): Column => ({ title, unit });
export const figures = (title: string, unit = ""): Column => ({ title, unit, isNumber: true });
export const bars = (title: string, unit = "", bar: BarOptions = {}): Column => ({ ...figures(title, unit), bar });

export const text = (said: string): Cell => ({ shown: visible(said), value: said });
export const name = (said: string, longest?: number): Cell => ({ shown: <Name text={said} longest={longest} />, value: said });
export const time = (ms: number | null, withMs = false): Cell => ({ shown: <Time ms={ms} withMs={withMs} />, value: ms });
export const span = (seconds: number | null): Cell => ({ shown: seconds === null ? UNKNOWN : duration(1_000 * seconds), value: seconds });
export const count = (value: number | null, digits = 0, fill?: string): Cell => ({ shown: number(value, digits), value, ...(fill && { fill }) });

/** So many rows of a table are shown at a time. */
const PAGE = 50;

/** On a narrow screen each row becomes a card (`report.css`), for which each cell has the title of its column. The roles say that
 * it remains a table: browsers forget that where the style makes it something else. */
export function Table({ caption, columns, rows, isSortable = true, class: extra = "" }: TableProps) {
  const [order, setOrder] = useState<{ column: number; sign: 1 | -1 } | null>(null);
  const [wanted, setWanted] = useState(0);
  const sorted = order ? [...rows].sort((one, other) => order.sign * compare(one[order.column]!, other[order.column]!)) : rows;
  const choose = (column: number) => {
    if (order?.column === column) setOrder({ column, sign: order.sign === 1 ? -1 : 1 });
    else setOrder({ column, sign: columns[column]!.isNumber ? -1 : 1 });
    setWanted(0);
  };
  const first = Math.min(wanted, PAGE * Math.floor(Math.max(0, rows.length - 1) / PAGE));
  const last = Math.min(first + PAGE, rows.length);
  const longest = columns.map(({ bar }, column) => (bar ? longestBar(rows.map((row) => row[column]!.value as number), bar) : 0));
  return (
    <>
      <div class={`scroll ${extra} ${isSortable ? "" : "fixed"}`} tabIndex={0} role="group" aria-label={caption}>
        <table role="table">
          <caption>{caption}</caption>
          <thead role="rowgroup">
            <tr role="row">
              {columns.map(({ title, unit, isNumber }, column) => {
                const sign = order?.column === column ? order.sign : 0;
                const head = <>{title}{unit && <small> {unit}</small>}</>;
                return (
                  <th key={column} role="columnheader" scope="col" class={isNumber ? "number" : ""} aria-sort={sign ? (sign === 1 ? "ascending" : "descending") : undefined}>
                    {isSortable ? <button type="button" onClick={() => choose(column)}>{head}</button> : head}
                  </th>
                );
              })}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {sorted.slice(first, last).map((row, place) => (
              <tr key={first + place} role="row">
                {row.map((cell, column) => (
                  <td key={column} role="cell" data-title={columns[column]!.title} class={columns[column]!.isNumber ? "number" : ""}>{cell.shown}{longest[column]! > 0 && <Bar cell={cell} longest={longest[column]!} mark={columns[column]!.bar?.mark} />}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > PAGE && (
        <p class="pages">
          <button type="button" disabled={first === 0} onClick={() => setWanted(first - PAGE)}>Previous</button>{" "}
          <output>{number(first + 1)} to {number(last)} of {number(rows.length)}</output>{" "}
          <button type="button" disabled={last === rows.length} onClick={() => setWanted(first + PAGE)}>Next</button>
        </p>
      )}
    </>
  );
}

/** What the longest bar of a column stands for; 0 if bars would say nothing, because all numbers are the same. */
function longestBar(values: number[], { highest = 0 }: BarOptions): number {
  return values.every((value) => value === values[0]) ? 0 : Math.max(highest, ...values);
}

function Bar({ cell: { value, fill = "var(--m0)" }, longest, mark }: { cell: Cell; longest: number; mark: number | undefined }) {
  const percent = (part: number) => `${(100 * Math.max(0, part)) / longest}%`;
  if (value === null) return null;
  return (
    <span class="in-bar" aria-hidden="true">
      <i style={{ width: percent(value as number), background: fill }} />
      {mark !== undefined && <b style={{ left: percent(mark) }} />}
    </span>
  );
}

/** What is unknown is least. */
function compare({ value: one }: Cell, { value: other }: Cell): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  return typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
}

/** A name that somebody chose, whatever it is. */
export function Name({ text: said, longest = 60 }: { text: string; longest?: number | undefined }) {
  const whole = visible(said);
  if (!whole) return <i>(empty)</i>;
  const short = shortened(whole, longest);
  return <bdi title={short === whole ? undefined : whole}>{short}</bdi>;
}

export function Time({ ms, withMs = false }: { ms: number | null; withMs?: boolean }) {
  const iso = ms === null ? null : isoTime(ms);
  if (iso === null) return <>{ms === null ? UNKNOWN : moment(ms)}</>;
  return <time dateTime={iso}>{moment(ms, withMs)}</time>;
}

export function NoneOf({ what }: { what: string }) {
  return <p class="quiet">There are no {what}.</p>;
}

export function LeftOut({ count: more, what, table, isAtLeast = false }: { count: number; what: string; table: string; isAtLeast?: boolean }) {
  if (more <= 0) return null;
  return <p class="quiet">{isAtLeast && "at least "}{number(more)} more {more === 1 ? singular(what) : what}: table <code>{table}</code></p>;
}
