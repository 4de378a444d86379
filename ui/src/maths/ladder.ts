/** One chain as a ladder: which spans lie in which lane, and labels that do not lie on each other. */
import type { ChainInFull, State } from "../data/types";
import { lookOf } from "../draw/tokens";
import { counted, runs } from "./format";

export interface Rail {
  name: string;
  lane: string;
  title: string;
  detail: string;
  from_ns: number;
  to_ns: number;
}

export interface Label {
  text: string;
  from_ns: number;
  to_ns: number;
  /** Time spent in the labelled spans alone. */
  spent_ns: number;
  count: number;
}

export const LADDER_LANES = ["L3", "L2", "L1", "L0", "VMM", "off"];

/** Spans of a chain, cut to it. */
export function rails(chain: ChainInFull, states: State[]): Rail[] {
  return chain.slices.map((slice) => {
    const state = states[slice.state] ?? { name: "unknown", title: "unknown" };
    return {
      name: state.name,
      title: state.title,
      lane: lookOf(state.name).step,
      detail: slice.detail,
      from_ns: Math.max(slice.from_ns, chain.from_ns) - chain.from_ns,
      to_ns: Math.min(slice.to_ns, chain.to_ns) - chain.from_ns,
    };
  });
}

/** Neighbouring exits of one reason share a label; spans without a reason between them do not part them. */
export function labels(spans: Rail[]): Label[] {
  const out: Label[] = [];
  for (const [i, span] of spans.entries()) {
    const last = out.at(-1);
    if (!span.detail) {
      // L0 goes on with the same exit: only its first slice carries the reason.
      if (last && span.lane === "L0" && spans[i - 1]?.lane === "L0") {
        last.spent_ns += span.to_ns - span.from_ns;
        last.to_ns = span.to_ns;
      }
      continue;
    }
    if (last?.text === span.detail) {
      last.count++;
      last.spent_ns += span.to_ns - span.from_ns;
      last.to_ns = span.to_ns;
    } else {
      out.push({
        text: span.detail,
        count: 1,
        from_ns: span.from_ns,
        to_ns: span.to_ns,
        spent_ns: span.to_ns - span.from_ns,
      });
    }
  }
  return out;
}

/** Pushes places apart until neighbours are `gap` away, keeping order and staying inside `[0, height]`. */
export function spread(wanted: number[], gap: number, height: number): number[] {
  const out = [...wanted];
  for (let i = 1; i < out.length; i++) out[i] = Math.max(out[i]!, out[i - 1]! + gap);
  for (let i = out.length - 1, limit = height; i >= 0; i--, limit -= gap) out[i] = Math.min(out[i]!, limit);
  return out;
}

/** `1 L2 exit = 15 L1 exits, 8 of them VMREAD`. */
export function heading(chain: { exits: number; sequence: string[] }): string {
  const counts = new Map<string, number>();
  for (const { name, count } of runs(chain.sequence)) counts.set(name, (counts.get(name) ?? 0) + count);
  const [name, most] = [...counts].sort((a, b) => b[1] - a[1])[0] ?? ["", 0];
  const total = `1 L2 exit = ${counted(chain.exits, "L1 exit")}`;
  return most > 1 ? `${total}, ${most} of them ${name}` : total;
}
