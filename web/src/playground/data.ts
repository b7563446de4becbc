/** What Python tells: the JSON of groupcoord/playground/page_session.py, and what is used here of that of snapshot.py. */
import type { Batch } from "../data.ts";

export interface Argument {
  type: string;
  choices: string[];
  required: boolean;
  default: unknown;
}

interface ActionDescription {
  text: string;
  arguments: Record<string, Argument>;
}

/** `do` is the name of an action, everything else its arguments. */
export interface Done {
  do: string;
  [argument: string]: unknown;
}

/** What a playground begins with. */
export interface Setup {
  brokers?: number;
  topics?: Record<string, number>;
  config?: Record<string, unknown>;
}

export interface LessonOutline {
  name: string;
  title: string;
  summary: string;
  chapter: string;
  setup: Setup;
  steps: { title: string; text: string; actions: Done[] }[];
}

export interface Contents {
  lessons: LessonOutline[];
  actions: Record<string, ActionDescription>;
}

export interface MemberProcess {
  group: string;
  protocol: string;
  assignors: string[];
  instance_id: string | null;
  status: "running" | "not polling" | "paused" | "killed" | "closed";
  member_id: string;
  generation: number;
  owns: string[];
  errors: string[];
}

export interface Snapshot {
  now_ms: number;
  brokers: Record<string, string>;
  topics: Record<
    string,
    {
      partitions: {
        leader: number;
        end_offset: number;
        last_stable_offset: number;
        records: { offset: number; value: string; state: "committed" | "open" | "aborted" }[];
      }[];
    }
  >;
  groups: Record<string, object>;
  members: Record<string, MemberProcess>;
  producers: Record<string, { transactional_id: string; status: string; producer_id: number; epoch: number }>;
  transactions: Record<string, { state: string; producer_id: number; epoch: number; partitions: string[] }>;
  deadlines: { at_ms: number; reason: string }[];
  rules: Record<string, { text: string; uses: number }>;
}

export interface Outcome extends Batch {
  answer?: unknown;
  snapshot: Snapshot;
}

export interface StepOutcome extends Outcome {
  expectations: { text: string; holds: boolean }[];
  why: string;
}
