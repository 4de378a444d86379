/** What lies at a place of a lane: its slice and its chain. */
import type { Recording } from "../../data/source";
import type { Chain, Slice, Slices } from "../../data/types";
import { around, type Window } from "../../maths/window";

export function sliceAt(slices: Slices | undefined, ns: number): Slice | null {
  return slices?.slices.find((slice) => ns >= slice.from_ns && ns < slice.to_ns) ?? null;
}

export async function at(recording: Recording, lane: number, ns: number): Promise<Slice | null> {
  const found = await recording.slices([lane], ns, ns + 1, 1);
  return found.get(lane)?.slices[0] ?? null;
}

export async function chainAt(recording: Recording, lane: number, ns: number): Promise<Chain | null> {
  const found = await recording.chains({ lane, t0: ns, t1: ns + 1, limit: 1 });
  return found.chains[0] ?? null;
}

/** What two clicks zoom to: the chain there, and inside a chain that fills the screen its slice. */
export async function targetAt(
  recording: Recording,
  lane: number,
  ns: number,
  window: Window,
): Promise<Window | null> {
  const instant = Math.floor(ns);
  const [chain, slice] = await Promise.all([chainAt(recording, lane, instant), at(recording, lane, instant)]);
  const length = window.t1 - window.t0;
  if (chain && (chain.to_ns - chain.from_ns) * 1.5 < length)
    return around({ t0: chain.from_ns, t1: chain.to_ns });
  return slice ? around({ t0: slice.from_ns, t1: slice.to_ns }) : null;
}
