/** Tables that sort by any column, and the parts that their cells are made of. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { isoTime, moment, number, shortened, UNKNOWN, visible } from "./text.ts";

export interface Column {
  title: string;
  unit?: string;
  isNumber?: boolean;
}

/** What a cell shows, and what its column is sorted by. */
export interface Cell {
  shown: ComponentChildren;
  value: string | number | null;
}

export interface TableProps {
  caption: string;
  /** The tables of the pipeline that it is from. */
  from: string[];
  columns: Column[];
  rows: Cell[][];
  isSortable?: boolean;
}

export const words = (title: string, unit = ""): Column => ({ title, unit });
export const figures = (title: string, unit = ""): Column => ({ title, unit, isNumber: true });

export const text = (said: string): Cell => ({ shown: visible(said), value: said });
export const name = (said: string, longest?: number): Cell => ({ shown: <Name text={said} longest={longest} />, value: said });
export const time = (ms: number | null, withMs = false): Cell => ({ shown: <Time ms={ms} withMs={withMs} />, value: ms });
export const count = (value: number | null): Cell => ({ shown: number(value), value });

/** A number with a bar that compares it with the other rows; `mark` (0 to 1) draws a line. */
export function bar(value: number | null, highest: number, { digits = 0, mark, fill = "var(--m0)" }: { digits?: number; mark?: number; fill?: string } = {}): Cell {
  const percent = (share: number) => `${100 * Math.max(0, Math.min(1, share))}%`;
  if (value === null) return count(null);
  return {
    value,
    shown: (
      <>
        {number(value, digits)}
        <span class="in-bar" aria-hidden="true">
          <i style={{ width: percent(highest ? value / highest : 0), background: fill }} />
          {mark !== undefined && <b style={{ left: percent(mark) }} />}
        </span>
      </>
    ),
  };
}

export function Table({ caption, from, columns, rows, isSortable = true }: TableProps) {
  const [order, setOrder] = useState<{ column: number; sign: 1 | -1 } | null>(null);
  const sorted = order ? [...rows].sort((one, other) => order.sign * compare(one[order.column]!, other[order.column]!)) : rows;
  const choose = (column: number) => {
    if (order?.column === column) setOrder({ column, sign: order.sign === 1 ? -1 : 1 });
    else setOrder({ column, sign: columns[column]!.isNumber ? -1 : 1 });
  };
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={caption}>
      <table>
        <caption>{caption} <From tables={from} /></caption>
        <thead>
          <tr>
            {columns.map(({ title, unit, isNumber }, column) => {
              const sign = order?.column === column ? order.sign : 0;
              const head = <>{title}{unit && <small> {unit}</small>}</>;
              return (
                <th key={column} scope="col" class={isNumber ? "number" : ""} aria-sort={sign ? (sign === 1 ? "ascending" : "descending") : undefined}>
                  {isSortable ? <button type="button" onClick={() => choose(column)}>{head}</button> : head}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row, place) => (
            <tr key={place}>{row.map((cell, column) => <td key={column} class={columns[column]!.isNumber ? "number" : ""}>{cell.shown}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What is unknown is least. */
function compare({ value: one }: Cell, { value: other }: Cell): number {
  if (one === null || other === null) return Number(one !== null) - Number(other !== null);
  return typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), "en", { numeric: true });
}

/** Which tables something is from. */
export function From({ tables }: { tables: string[] }) {
  return (
    <span class="from">
      from table{tables.length > 1 && "s"} {tables.map((table, place) => <>{place > 0 && ", "}<code key={table}>{table}</code></>)}
    </span>
  );
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

export function NoneOf({ what, table }: { what: string; table: string }) {
  return <p class="quiet">There are no {what}. <From tables={[table]} /></p>;
}

export function LeftOut({ count: more, what, table, isAtLeast = false }: { count: number; what: string; table: string; isAtLeast?: boolean }) {
  if (more <= 0) return null;
  return <p class="quiet">{isAtLeast && "at least "}{number(more)} more {what}: table <code>{table}</code></p>;
}
