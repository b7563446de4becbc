/** A drawing of rows over a horizontal time axis. It is stretched sideways and never up; all text is outside of it, so that it
 * has the same size on every screen. */
import { scaleLinear } from "d3-scale";
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { axisLabel, moment, visible } from "./text.ts";

const WIDTH = 1_000;
export const ROW_HEIGHT = 18;
const TICKS = 5;
/** Times on shorter drawings have milliseconds. */
const FINE_SPAN_MS = 20_000;
/** A click so many pixels beside a line means it. */
const NEAR = 12;

/** Rectangles as one path; `title` says what they show. */
export interface Shape {
  title: string;
  path: string;
  fill: string;
  opacity?: number;
}

/** A line across all rows. */
export interface Line {
  x: number;
  kind: string;
  title: string;
}

/** A label with a `title` is a name that somebody chose; `suffix` follows it. */
export interface Row {
  label: string;
  title?: string;
  suffix?: string;
  shapes: Shape[];
}

interface ChartProps {
  title: string;
  startMs: number;
  endMs: number;
  rows: Row[];
  rowHeight?: number;
  shades?: Shape[];
  lines?: Line[];
  /** What stands below it. */
  children?: ComponentChildren;
}

/** From times to places. */
export function timeScale(startMs: number, endMs: number): (ms: number) => number {
  const place = scaleLinear([startMs, Math.max(endMs, startMs + 1)], [0, WIDTH]).clamp(true);
  return (ms) => round(place(ms));
}

/** A rectangle, at least so wide that it is seen. */
export function box(left: number, right: number, top: number, height: number): string {
  const width = round(Math.max(right - left, 0.5));
  return `M${left},${round(top)}h${width}v${round(height)}h-${width}z`;
}

function round(value: number): number {
  return Math.round(10 * value) / 10;
}

export function Chart({ title, startMs, endMs, rows, rowHeight = ROW_HEIGHT, shades = [], lines = [], children }: ChartProps) {
  const id = useId();
  const [said, setSaid] = useState<{ text: string; line: number }>({ text: "", line: -1 });
  const height = rowHeight * rows.length;
  const span = endMs - startMs;
  const isFine = span < FINE_SPAN_MS;
  const interval = `${moment(startMs, isFine)} to ${moment(endMs, isFine)} UTC`;
  const clicked = (event: MouseEvent & { currentTarget: SVGSVGElement }) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const away = lines.map(({ x }) => Math.abs((x / WIDTH) * width - (event.clientX - left)));
    const line = away.indexOf(Math.min(...away, NEAR));
    const shape = (event.target as Element).querySelector(":scope > title")?.textContent ?? "";
    setSaid({ line, text: lines[line]?.title ?? (event.target === event.currentTarget ? "" : shape) });
  };
  return (
    <figure>
      <figcaption><b>{title}</b> {interval}</figcaption>
      <div class="chart" style={{ "--row": `${rowHeight}px` }}>
        <ul class="labels">
          {rows.map(({ label, title: whole, suffix }, place) => (
            <li key={place}>{whole === undefined ? label : <bdi title={visible(whole)}>{label}</bdi>}{suffix && <span>{suffix}</span>}</li>
          ))}
        </ul>
        <div class="drawing">
          <svg viewBox={`0 0 ${WIDTH} ${height}`} height={height} preserveAspectRatio="none" role="img" aria-labelledby={id} onClick={clicked}>
            <title id={id}>{title}, {interval}</title>
            {shades.map((shape, place) => <Path key={place} shape={shape} />)}
            {rows.map(({ shapes }, row) => (
              <g key={row} transform={`translate(0 ${row * rowHeight})`}>{shapes.map((shape, place) => <Path key={place} shape={shape} />)}</g>
            ))}
            {lines.map(({ x, kind, title: meaning }, place) => (
              <line key={place} x1={x} x2={x} y1={0} y2={height} class={`line-${kind} ${place === said.line ? "on" : ""}`} vector-effect="non-scaling-stroke"><title>{meaning}</title></line>
            ))}
          </svg>
          <div class="axis">
            {Array.from({ length: TICKS }, (_, tick) => <span key={tick}>{axisLabel(startMs + Math.floor((span * tick) / (TICKS - 1)), span)}</span>)}
          </div>
        </div>
      </div>
      <output class="tip">{said.text}</output>
      {children}
    </figure>
  );
}

function Path({ shape }: { shape: Shape }) {
  return <path d={shape.path} fill={shape.fill} fill-opacity={shape.opacity}><title>{shape.title}</title></path>;
}
