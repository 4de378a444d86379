/** What is chosen on the timeline, as the address has it: a slice by its lane and an instant in it, or an area. */
import { lanesOf } from "../data/lanes";
import type { Window } from "./window";

/** A stretch of time over some lanes. */
export interface Area {
  window: Window;
  lanes: number[];
}

export interface Pick {
  lane: number;
  ns: number;
}

type Hash = Record<string, string>;

/** `pick=3.1200345`: what lane 3 did at 1,200,345 ns. */
export function pickOf(hash: Hash): Pick | null {
  const [, lane, ns] = hash.pick?.match(/^(\d+)\.(\d+)$/) ?? [];
  return lane !== undefined && ns !== undefined ? { lane: Number(lane), ns: Number(ns) } : null;
}

/** `area=1000.2000.0-3`: lanes 0 to 3 from 1,000 to 2,000 ns. */
export function areaOf(hash: Hash): Area | null {
  const [, t0, t1, list] = hash.area?.match(/^(\d+)\.(\d+)\.([\d,-]+)$/) ?? [];
  if (list === undefined || Number(t1) <= Number(t0)) return null;
  const lanes = lanesOf(list);
  return lanes.length > 0 ? { window: { t0: Number(t0), t1: Number(t1) }, lanes } : null;
}
