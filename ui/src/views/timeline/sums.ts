/** Time in each state over some lanes: exact where a source can tell, else from the pixels; and the sentence of it. */
import { useEffect, useState } from "preact/hooks";
import { meanOf } from "../../data/lanes";
import type { Recording } from "../../data/source";
import type { Tile } from "../../data/tile";
import { coverageOf } from "../../draw/lane";
import { duration, percent, placed } from "../../maths/format";
import type { Window } from "../../maths/window";

export const SETTLE_MS = 120;

/** The exact sums of the window over all lanes, SETTLE_MS after it came to rest. */
export function useExact(recording: Recording, lanes: number[], window: Window): number[] | null {
  const [sums, setSums] = useState<number[] | null>(null);
  useEffect(() => {
    setSums(null);
    let current = true;
    const timer = setTimeout(() => {
      recording.states(lanes, window.t0, window.t1).then(
        (each) => {
          if (current && each) setSums(totalOf(each));
        },
        () => undefined,
      );
    }, SETTLE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [recording, window.t0, window.t1, lanes.join()]);
  return sums;
}

/** Time in each state over all lanes together. */
export function totalOf(each: Map<number, number[]>): number[] {
  return [...each.values()].reduce<number[]>((sum, one) => one.map((ns, s) => ns + (sum[s] ?? 0)), []);
}

export function approximate(tiles: Tile[], lanes: number[], window: Window, states: number): number[] {
  const sums = Array<number>(states).fill(0);
  if (tiles.length === 0) return sums;
  const { share } = coverageOf(tiles, meanOf(lanes), window.t0, window.t1, 256);
  const scale = ((window.t1 - window.t0) * lanes.length) / 256;
  for (let i = 0; i < share.length; i++) sums[i % states] = sums[i % states]! + share[i]! * scale;
  return sums;
}

export function caption(
  titles: string[],
  sums: number[],
  total: number,
  window: Window,
  lanes: string,
  exact: boolean,
  drawn: { covers: boolean; stairs: boolean },
  isKnown = true,
): string {
  const most = sums
    .map((ns, s) => ({ ns, s }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => b.ns - a.ns)
    .slice(0, 3);
  const span = `${duration(window.t1 - window.t0)} from ${placed(window.t0, window.t1 - window.t0)}`;
  if (!isKnown) return `${span}, ${lanes}.`;
  if (most.length === 0) return `${span}: nothing is known here.`;
  const parts = most.map(({ ns, s }) => `${percent(ns / total)} ${titles[s]}`);
  return `${span}, ${lanes}: ${exact ? "" : "about "}${parts.join(", ")}.${drawn.covers ? ` ${drawn.stairs ? "In stacked lanes, heights" : "Heights"} are shares of time, exact at every zoom.` : ""}${drawn.stairs ? " In lanes with rows, each row is a level." : ""}`;
}
