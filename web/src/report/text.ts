/** Numbers with their units, times and names as text for people. What is unknown is a dash. */

export const UNKNOWN = "–";
const DAY_MS = 86_400_000;
/** The years 1 to 9999. */
const FIRST_MS = Date.parse("0001-01-01T00:00:00Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** `12,345`; with `digits` after the point. */
export function number(value: number | null, digits = 0): string {
  return value === null ? UNKNOWN : value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** `12,345 records`; `unit` is a plural that ends in s. */
export function amount(value: number | null, unit: string): string {
  return `${number(value)} ${value === 1 ? singular(unit) : unit}`;
}

/** `storm with fewer rebalances` of `storms with fewer rebalances`: the first plural in s, and the verb of a clause right behind it. */
export function singular(what: string): string {
  return what.replace(/s\b/, "").replace(/^(\w+,? that) (were|have)\b/, (_, subject: string, verb: string) => `${subject} ${verb === "were" ? "was" : "has"}`);
}

/** `2026-11-21T13:26:51.007Z`; null if no calendar has it. */
export function isoTime(ms: number): string | null {
  return ms >= FIRST_MS && ms <= LAST_MS ? new Date(ms).toISOString() : null;
}

/** `2026-11-21 13:26:51`, in UTC. */
export function moment(ms: number | null, withMs = false): string {
  if (ms === null) return UNKNOWN;
  const iso = isoTime(ms);
  return iso === null ? `${number(ms)} ms since 1970` : iso.replace("T", " ").slice(0, withMs ? 23 : 19);
}

/** A time on an axis that is `spanMs` long: only the part that differs along it. */
export function axisLabel(ms: number, spanMs: number): string {
  const text = moment(ms, true);
  if (spanMs >= 2 * DAY_MS) return text.slice(0, 16);
  return text.slice(11, spanMs >= 20_000 ? 19 : 23);
}

/** `1 h 38 min`: the two largest units. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms.toFixed(0)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, "")} s`;
  const units: [string, number][] = [["d", 86_400], ["h", 3_600], ["min", 60], ["s", 1]];
  let seconds = Math.round(ms / 1_000);
  const first = units.findIndex(([, size]) => seconds >= size);
  const parts: string[] = [];
  for (const [unit, size] of units.slice(first, first + 2)) {
    const count = Math.floor(seconds / size);
    seconds -= count * size;
    if (count) parts.push(`${number(count)} ${unit}`);
  }
  return parts.join(" ");
}

/** `text` with every invisible character as its number, because names may be hostile: control characters, marks of direction,
 * lone surrogates. Every kind of space becomes a space. */
export function visible(text: string): string {
  return text
    .replace(/\p{Zs}/gu, " ")
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`);
}

/** `text` without its middle if it is longer than `longest`. */
export function shortened(text: string, longest = 60): string {
  const whole = [...visible(text)];
  if (whole.length <= longest) return whole.join("");
  const tail = Math.floor(longest / 3);
  return `${whole.slice(0, longest - tail - 1).join("")}…${whole.slice(-tail).join("")}`;
}
