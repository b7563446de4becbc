/** What the page shows, and what a person does with it: each wish is a request to Python, one after the other. */
import type { Batch, Dissection, Entry, Header, Source } from "../data.ts";
import type { Contents, Done, LessonOutline, Outcome, Setup, Snapshot, StepOutcome } from "./data.ts";
import { pageActions } from "./page_actions.ts";
import { Python } from "./python.ts";

/** A lesson of which so many steps are done, or free play. */
export type Mode =
  | { kind: "lesson"; lesson: LessonOutline; done: number; outcome: StepOutcome | null }
  | { kind: "play"; setup: Setup; actions: Done[] };

export interface State {
  /** What is being loaded; "" if all is there. */
  progress: string;
  contents: Contents;
  mode: Mode;
  snapshot: Snapshot | null;
  header: Header | null;
  entries: Entry[];
  busy: boolean;
  /** What was refused last, in words; "" if nothing was. */
  problem: string;
  /** What the last action was answered, if it was answered anything. */
  answer: string;
}

const NOTHING: Mode = { kind: "play", setup: {}, actions: [] };

export class Store {
  state: State = {
    progress: "Loading …",
    contents: { lessons: [], actions: {} },
    mode: NOTHING,
    snapshot: null,
    header: null,
    entries: [],
    busy: false,
    problem: "",
    answer: "",
  };
  private python = new Python();
  private listeners = new Set<() => void>();
  private tells = new Set<(batch: Batch) => void>();

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Load Python, and go where `hash` says: see `place`. */
  async start(hash: string): Promise<void> {
    try {
      await this.python.start((progress) => this.set({ progress }));
      this.set({ contents: await this.python.ask<Contents>({ ask: "contents" }), progress: "" });
      await this.go(hash);
    } catch (error) {
      this.set({ progress: `The playground cannot start: ${message(error)}` });
    }
  }

  /** Go to a place that `place` has told. */
  async go(hash: string): Promise<void> {
    const [kind, rest = ""] = hash.replace(/^#/, "").split("=", 2);
    const [name, steps] = rest.split("/");
    const lesson = this.state.contents.lessons.find((each) => each.name === name);
    if (kind === "lesson" && lesson) {
      await this.lesson(lesson, Math.min(Math.max(Number(steps) || 0, 0), lesson.steps.length));
    } else if (kind === "play" && rest) {
      await this.wish(async () => {
        const { setup, actions } = JSON.parse(decodeURIComponent(rest)) as { setup: Setup; actions: Done[] };
        await this.begin(setup, actions);
      });
    } else await this.play({}, []);
  }

  /** Where the person is, for the address of the page. */
  get place(): string {
    const { mode } = this.state;
    if (mode.kind === "lesson") return `#lesson=${mode.lesson.name}/${mode.done}`;
    if (!mode.actions.length) return "#";
    return `#play=${encodeURIComponent(JSON.stringify({ setup: mode.setup, actions: mode.actions }))}`;
  }

  // Lessons.

  /** Show `lesson` after so many steps: 0 is its beginning, with nothing done yet. */
  lesson(lesson: LessonOutline, steps: number): Promise<void> {
    return this.wish(async () => {
      const before = this.state.mode;
      const isNext = before.kind === "lesson" && before.lesson === lesson && before.done + 1 === steps;
      const outcome = await this.python.ask<StepOutcome>({ ask: "lesson", name: lesson.name, steps });
      this.took(outcome, { kind: "lesson", lesson, done: steps, outcome: steps ? outcome : null });
      if (!isNext) scrollTo({ top: 0 });
    });
  }

  /** Leave the lesson, and go on with the cluster as it is. */
  leaveLesson(): void {
    const { mode } = this.state;
    if (mode.kind !== "lesson") return;
    const actions = mode.lesson.steps.slice(0, mode.done).flatMap((step) => step.actions);
    this.set({ mode: { kind: "play", setup: mode.lesson.setup, actions }, problem: "", answer: "" });
  }

  // Free play.

  /** A new cluster, on which `actions` are done. */
  play(setup: Setup, actions: Done[]): Promise<void> {
    return this.wish(() => this.begin(setup, actions));
  }

  /** Do one thing. */
  act(action: Done): Promise<void> {
    return this.wish(async () => {
      const { mode } = this.state;
      if (mode.kind !== "play") throw new Error("a lesson is open: play on from here, and then do this");
      const { do: name, ...given } = action;
      const outcome = await this.python.ask<Outcome>({ ask: "act", action: name, arguments: given });
      this.took(outcome, { ...mode, actions: [...mode.actions, action] });
    });
  }

  /** The cluster as it was before the last action: all the others are done again. */
  undo(): Promise<void> {
    const { mode } = this.state;
    return mode.kind === "play" ? this.play(mode.setup, mode.actions.slice(0, -1)) : Promise.resolve();
  }

  /** The answer to a question about the trace, or why there is none. */
  async why(question: Record<string, unknown>): Promise<string> {
    try {
      return (await this.python.ask<{ text: string }>({ ask: "why", question })).text;
    } catch (error) {
      return message(error);
    }
  }

  /** The group that was acted on last; "" if none was. */
  get focus(): string {
    const { mode, snapshot } = this.state;
    const steps = mode.kind === "lesson" ? mode.lesson.steps.slice(0, mode.done).flatMap((step) => step.actions) : mode.actions;
    const groups = steps.map((action) => action.group ?? snapshot?.members[String(action.member)]?.group);
    return String(groups.findLast((group) => group !== undefined) ?? "");
  }

  /** Where the kit gets its data. */
  readonly source: Source = this.makeSource();

  private makeSource(): Source {
    const store = this;
    return {
      kind: "playground",
      title: "groupcoord playground",
      start(tell) {
        const { header, entries } = store.state;
        if (header) tell({ header, entries });
        store.tells.add(tell);
        return () => store.tells.delete(tell);
      },
      why: (group, number, isEpoch) => store.why({ group, [isEpoch ? "epoch" : "generation"]: number }),
      bytes: async (seq) => (await store.python.ask<{ dissection: Dissection | null }>({ ask: "bytes", seq })).dissection,
      get actions() {
        return store.state.mode.kind === "play" ? pageActions(store) : [];
      },
    };
  }

  private async begin(setup: Setup, actions: Done[]): Promise<void> {
    const outcome = await this.python.ask<Outcome>({ ask: "begin", setup, actions });
    this.took(outcome, { kind: "play", setup, actions });
  }

  private async wish(does: () => Promise<void>): Promise<void> {
    if (this.state.busy) return;
    this.set({ busy: true, problem: "" });
    try {
      await does();
    } catch (error) {
      this.set({ problem: message(error) });
    } finally {
      this.set({ busy: false });
    }
  }

  private took(outcome: Outcome, mode: Mode): void {
    const { answer } = outcome;
    this.set({
      mode,
      snapshot: outcome.snapshot,
      header: outcome.header ?? this.state.header,
      entries: outcome.header ? outcome.entries : [...this.state.entries, ...outcome.entries],
      answer: answer === null || answer === undefined ? "" : typeof answer === "string" ? answer : JSON.stringify(answer),
    });
    for (const tell of this.tells) tell(outcome);
    try {
      history.replaceState(null, "", this.place);
    } catch {
      // A page from a file may not change its address in every browser; then it cannot be linked to.
    }
  }

  private set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
