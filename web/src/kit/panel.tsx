/** A box with a heading: what every part of a page stands in. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface PanelProps {
  title: ComponentChildren;
  /** Where links lead that are to it. */
  id?: string;
  /** What stands at the right end of the heading. */
  aside?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Panel({ title, id: place, aside, class: extra = "", children }: PanelProps) {
  const id = useId();
  return (
    <section id={place} class={`panel ${extra}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {aside !== undefined && <div>{aside}</div>}
      </header>
      <div class="body">{children}</div>
    </section>
  );
}
