/** Lessons: their list, and the one that is open, with its steps. */
import { useEffect, useRef } from "preact/hooks";
import { Panel } from "../kit/panel.tsx";
import type { Mode, State, Store } from "./store.ts";
import { called } from "./words.tsx";

export function LessonList({ store, state }: { store: Store; state: State }) {
  return (
    <Panel title="Lessons" class="lessons">
      <ol>
        {state.contents.lessons.map((lesson) => (
          <li key={lesson.name}>
            <button type="button" class="link" disabled={state.busy} onClick={() => void store.lesson(lesson, 0)}>
              {lesson.title}
            </button>
            <p class="quiet">{lesson.summary}</p>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

export function LessonView({ store, state, mode }: { store: Store; state: State; mode: Extract<Mode, { kind: "lesson" }> }) {
  const { lesson, done, outcome } = mode;
  const step = done ? lesson.steps[done - 1] : null;
  const last = done === lesson.steps.length;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [lesson, done]);
  const go = (steps: number) => void store.lesson(lesson, steps);
  return (
    <Panel
      class="lesson"
      title={lesson.title}
      aside={
        <button type="button" onClick={() => void store.play({}, [])}>
          All lessons
        </button>
      }
    >
      <progress value={done} max={lesson.steps.length} aria-label="Steps done" />
      <article aria-live="polite">
        <h3 tabIndex={-1} ref={heading}>
          {step ? `${done} of ${lesson.steps.length}: ${step.title}` : "Before the first step"}
        </h3>
        <p>{step ? step.text : lesson.summary}</p>
        {step && step.actions.length > 0 && (
          <details>
            <summary>Actions so far</summary>
            <ul class="mono">
              {step.actions.map((action, place) => (
                <li key={place}>{called(action)}</li>
              ))}
            </ul>
          </details>
        )}
        {outcome?.why && (
          <aside class="says">
            <h4>Why? The trace says</h4>
            {outcome.why.split("\n").map((line) => (
              <p key={line}>{line}</p>
            ))}
          </aside>
        )}
        {outcome && outcome.expectations.length > 0 && (
          <details>
            <summary>
              {outcome.expectations.filter((each) => each.holds).length} of {outcome.expectations.length} checks hold
            </summary>
            <ul class="checks">
              {outcome.expectations.map((each) => (
                <li key={each.text}>
                  <span class={each.holds ? "good" : "bad"}>{each.holds ? "✓" : "✗"}</span> {each.text}
                </li>
              ))}
            </ul>
          </details>
        )}
      </article>
      {state.problem && <p class="problem" role="alert">{state.problem}</p>}
      <nav class="steps" aria-label="Steps of the lesson">
        <button type="button" disabled={state.busy || done === 0} onClick={() => go(done - 1)} accessKey="b">
          ← Back
        </button>
        <button type="button" class="primary" disabled={state.busy || last} onClick={() => go(done + 1)} accessKey="n">
          {done ? "Next →" : "Begin →"}
        </button>
        <button type="button" disabled={state.busy || done === 0} onClick={() => go(0)}>
          Replay
        </button>
        <button type="button" disabled={state.busy} onClick={() => store.leaveLesson()}>
          Play on from here
        </button>
      </nav>
      {last && <p>That was the last step. Play on with this cluster, or take another lesson.</p>}
      <p class="quiet">
        <kbd>←</kbd> <kbd>→</kbd> go through the steps. More of this: docs/{lesson.chapter}
      </p>
    </Panel>
  );
}
