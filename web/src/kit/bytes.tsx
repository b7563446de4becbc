/** A message as bytes and as fields: the field that is pointed at is marked in the bytes, and the other way round. */
import { useState } from "preact/hooks";
import type { DissectedField, Dissection } from "../data.ts";

const SHOWN = 4_096;

export function Bytes({ frame, dissection }: { frame: string; dissection: Dissection | null }) {
  const [marked, mark] = useState<DissectedField | null>(null);
  const size = frame.length / 2;
  const at = marked && !marked.inside ? marked : null;
  const fields = dissection?.fields ?? [];
  const lines = [];
  for (let start = 0; start < Math.min(size, SHOWN); start += 16) lines.push(start);
  return (
    <div class="bytes">
      <h3>{dissection?.title ?? "Bytes"} <small>{size.toLocaleString("en")} bytes</small></h3>
      <div class="hex scroll" tabIndex={0} role="img" aria-label={`${size} bytes${at ? `; ${at.path} is bytes ${at.start} to ${at.end - 1}` : ""}`}>
        {lines.map((start) => (
          <div key={start}>
            <span class="offset">{start.toString(16).padStart(4, "0")}</span>
            {Array.from({ length: Math.min(16, size - start) }, (_, place) => {
              const offset = start + place;
              const field = fields.find((each) => !each.inside && each.start <= offset && offset < each.end);
              const on = at !== null && at.start <= offset && offset < at.end;
              return <span key={place} class={on ? "on" : ""} onMouseEnter={() => field && mark(field)}>{frame.slice(2 * offset, 2 * offset + 2)}</span>;
            })}
          </div>
        ))}
        {size > SHOWN && <p class="quiet">and {(size - SHOWN).toLocaleString("en")} bytes more</p>}
      </div>
      {dissection?.problem && <p class="badge bad">✕ at byte {dissection.problem.offset}: {dissection.problem.reason}</p>}
      {fields.length > 0 && (
        <div class="scroll field-list">
          <table>
            <caption class="visually-hidden">The fields of the message, in order</caption>
            <thead><tr><th scope="col">Field</th><th scope="col">Value</th><th scope="col" class="number">Bytes</th></tr></thead>
            <tbody>
              {fields.map((field) => (
                <tr key={`${field.path} ${field.start} ${field.inside}`} class={field === marked ? "on" : ""} onMouseEnter={() => mark(field)}>
                  <th scope="row" style={{ paddingLeft: `${8 + 10 * (field.path.split(/[.[]/).length - 1)}px` }}>
                    <button type="button" class="link mono" title={field.description} onFocus={() => mark(field)} onClick={() => mark(field)}>{field.path}</button>
                    {field === marked && <small class="about">{field.type}{field.description && `: ${field.description}`}</small>}
                  </th>
                  <td class="mono">{valueOf(field, frame)}{field.meaning && <small class="quiet"> {field.meaning}</small>}</td>
                  <td class="number mono">{field.inside ? "packed" : range(field)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

function range(field: DissectedField): string {
  if (field.end === field.start) return "–";
  return field.end - field.start === 1 ? `${field.start}` : `${field.start}–${field.end - 1}`;
}

/** Messages that differ in their correlation ids alone share a dissection. */
function valueOf(field: DissectedField, frame: string): string {
  if (field.path === "correlation_id") return String(parseInt(frame.slice(2 * field.start, 2 * field.end), 16) | 0);
  if (field.value === null) return "null";
  if (field.value === "") return field.type.includes("string") ? '""' : "empty";
  const text = String(field.value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
