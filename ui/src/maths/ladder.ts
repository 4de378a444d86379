/** One chain as a ladder: which spans lie in which lane, and labels that do not lie on each other. */
import type { Chain, ChainInFull, State } from "../data/types";
import { lookOf } from "../draw/tokens";
import { counted, grouped } from "./format";

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
  /** State in which it was handled: L2's exit and L1's own for one reason are two labels. */
  state: string;
  from_ns: number;
  to_ns: number;
  /** Time spent in the labelled spans alone. */
  spent_ns: number;
  count: number;
}

export const LADDER_LANES = ["L3", "L2", "L1", "L0", "VMM", "off CPU", "unknown"];

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
    if (last?.text === span.detail && last.state === span.name) {
      last.count++;
      last.spent_ns += span.to_ns - span.from_ns;
      last.to_ns = span.to_ns;
    } else {
      out.push({
        text: span.detail,
        state: span.name,
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

/** Rungs with a label of their own; a chain with more shows its ends. */
const MOST_LABELS = 40;

/** The labels of a long chain with its middle folded into one. */
export function folded(all: Label[]): Label[] {
  if (all.length <= MOST_LABELS) return all;
  const end = MOST_LABELS / 2;
  const middle = all.slice(end, -end);
  const exits = middle.reduce((sum, label) => sum + label.count, 0);
  const fold: Label = {
    text: `… ${counted(exits, "exit")}`,
    state: "",
    count: 1,
    from_ns: middle[0]!.from_ns,
    to_ns: middle.at(-1)!.to_ns,
    spent_ns: middle.reduce((sum, label) => sum + label.spent_ns, 0),
  };
  return [...all.slice(0, end), fold, ...all.slice(-end)];
}

/** Spans that can be told apart at `pixel_ns`: of several shorter ones in one pixel of a lane the first stays. */
export function visible(spans: Rail[], pixel_ns: number): Rail[] {
  const drawn = new Map<string, number>();
  return spans.filter((span) => {
    const pixel = Math.floor(span.from_ns / pixel_ns);
    const first = span.to_ns - span.from_ns >= pixel_ns || drawn.get(span.lane) !== pixel;
    drawn.set(span.lane, pixel);
    return first;
  });
}

/** `1 L2 exit = 15 L1 exits, 8 of them VMREAD`. */
export function heading({ exits, most }: Pick<Chain, "exits" | "most">): string {
  const total = `1 L2 exit = ${counted(exits, "L1 exit")}`;
  return most && most[1] > 1 ? `${total}, ${grouped(most[1])} of them ${most[0]}` : total;
}

/** Why what a chain took is not the cost of one exit, or nothing. */
export function disturbance({ interrupted, migrated }: Pick<Chain, "interrupted" | "migrated">): string {
  if (interrupted && migrated) return "L1 halted and L2 moved";
  if (interrupted) return "L1 halted";
  return migrated ? "L2 moved" : "";
}
