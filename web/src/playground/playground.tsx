/** The playground: lessons and free play with a real coordinator, which runs in this page. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Explorer } from "../kit/explorer.tsx";
import { Panel } from "../kit/panel.tsx";
import { LessonList, LessonView } from "./lesson_panel.tsx";
import { MembersPanel } from "./members_panel.tsx";
import { AddMember, Clock, HistoryPanel } from "./play_panel.tsx";
import { RecordsPanel } from "./records_panel.tsx";
import { Store } from "./store.ts";
import { seconds } from "./words.tsx";
import "./playground.css";

const store = new Store();

function App() {
  const [, redraw] = useState(0);
  useEffect(() => {
    const stop = store.subscribe(() => redraw((count) => count + 1));
    const go = () => void store.go(location.hash);
    addEventListener("hashchange", go);
    addEventListener("keydown", keyPressed);
    void store.start(location.hash);
    return () => {
      stop();
      removeEventListener("hashchange", go);
      removeEventListener("keydown", keyPressed);
    };
  }, []);
  const { state } = store;
  const { mode, snapshot } = state;
  if (!snapshot)
    return (
      <main class="loading">
        <h1>groupcoord playground</h1>
        <p class="quiet">A real group coordinator in Python, in this page: no server, and the same actions always have the same outcome.</p>
        <p role="status">{state.progress || state.problem}</p>
      </main>
    );
  return (
    <div class={`playground ${mode.kind === "play" && mode.actions.length ? "playing" : ""}`} aria-busy={state.busy}>
      <div class="guide">
        {mode.kind === "lesson" ? (
          <LessonView store={store} state={state} mode={mode} />
        ) : (
          <>
            <LessonList store={store} state={state} />
            <HistoryPanel store={store} state={state} mode={mode} />
          </>
        )}
      </div>
      <Explorer source={store.source} focus={store.focus} allGroups={Object.keys(snapshot.producers).length > 0}>
        <div class="play">
          {mode.kind === "play" && (
            <Panel title="Play" aside={<output class="clock" aria-label="The clock">{seconds(snapshot.now_ms - (state.header?.start_ms ?? 0))}</output>}>
              <Clock store={store} state={state} />
              <AddMember store={store} state={state} />
              <p class="outcome" role="status">
                {state.problem && <span class="problem">{state.problem}</span>}
                {state.answer && <>It was answered <code>{state.answer}</code></>}
              </p>
            </Panel>
          )}
          <MembersPanel store={store} state={state} snapshot={snapshot} />
          <RecordsPanel snapshot={snapshot} />
        </div>
      </Explorer>
    </div>
  );
}

function keyPressed(event: KeyboardEvent): void {
  const { mode } = store.state;
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const isElsewhere = event.target instanceof HTMLElement && event.target.closest("input, select, textarea, [role=listbox], .virtual, summary");
  if (!step || isElsewhere || event.altKey || event.ctrlKey || event.metaKey || mode.kind !== "lesson") return;
  const to = mode.done + step;
  if (to >= 0 && to <= mode.lesson.steps.length) void store.lesson(mode.lesson, to);
}

render(<App />, document.getElementById("app")!);
