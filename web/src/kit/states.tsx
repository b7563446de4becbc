/** The state machine of a group, with where the group is now. */
import type { Group } from "./model/state.ts";

type Place = [x: number, y: number];

interface Machine {
  states: Record<string, Place>;
  /** From, to, and the way the arrow is bent (pixels upwards). */
  edges: [string, string, number][];
}

const WIDTH = 140;
const HEIGHT = 30;

const Y = 58;

function machine(second: string, third: string): Machine {
  return {
    states: { Dead: [72, Y], Empty: [242, Y], [second]: [412, Y], [third]: [582, Y], Stable: [752, Y] },
    edges: [
      ["Empty", second, 0],
      [second, third, 0],
      [third, "Stable", 0],
      [third, second, 26],
      ["Stable", second, 46],
      [second, "Empty", 26],
      ["Empty", "Dead", 0],
    ],
  };
}

/** Source: `ClassicGroupState` and `ConsumerGroup.ConsumerGroupState`. */
const CLASSIC = machine("PreparingRebalance", "CompletingRebalance");
const CONSUMER = machine("Assigning", "Reconciling");

export function StateMachine({ group, before }: { group: Group; before: string }) {
  const { states, edges } = group.type === "consumer" ? CONSUMER : CLASSIC;
  const came = before && before !== group.state ? `, it was ${before} before` : "";
  return (
    <svg class="states" viewBox="0 0 824 80" role="img" aria-label={`State machine: the group is ${group.state} now${came}`}>
      <defs>
        {["", "-now"].map((kind) => (
          <marker key={kind} id={`arrow${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0L8 4L0 8z" class={`head${kind}`} />
          </marker>
        ))}
      </defs>
      {edges.map(([from, to, bend]) => {
        const now = from === before && to === group.state;
        return <path key={`${from} ${to}`} d={way(states[from]!, states[to]!, bend)} class={now ? "edge now" : "edge"} marker-end={`url(#arrow${now ? "-now" : ""})`} />;
      })}
      {Object.entries(states).map(([name, [x, y]]) => (
        <g key={name} class={name === group.state ? "state now" : "state"}>
          <rect x={x - WIDTH / 2} y={y - HEIGHT / 2} width={WIDTH} height={HEIGHT} rx="6" />
          <text x={x} y={y + 4}>{name === group.state ? `● ${name}` : name}</text>
        </g>
      ))}
    </svg>
  );
}

function way([fromX, fromY]: Place, [toX]: Place, bend: number): string {
  const side = Math.sign(toX - fromX);
  if (!bend) return `M${fromX + (side * WIDTH) / 2} ${fromY}H${toX - (side * WIDTH) / 2}`;
  const top = fromY - HEIGHT / 2;
  return `M${fromX - 12} ${top}C${fromX - 12} ${top - bend} ${toX + 12} ${top - bend} ${toX + 12} ${top}`;
}
