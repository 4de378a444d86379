/**
 * Where on the timeline a piece of evidence can be seen: the worst instant of what it is about.
 *
 * ```text
 * threads -> their lanes, else those of all vCPUs
 * span    -> itself; of a thread without a lane of its own, on the CPU that it was on
 * reasons -> the most expensive chain with most of them, else the longest slice that was left for one
 * states  -> the pixel with most of it, in that pixel the longest slice
 * ```
 */
import { reasonsOf, statesOf, threadsOf } from "../maths/about";
import { duration, instant } from "../maths/format";
import type { Window } from "../maths/window";
import type { Recording } from "./source";
import { type About, type Slice, type Timeline, vcpuLanes } from "./types";

const CHAINS = 200;
const SLICES = 10_000;
const PIXELS = 2048;

export interface Place {
  t0: number;
  t1: number;
  /** What lies there. */
  words: string;
  /** The lanes where that is seen, where they are known. */
  lanes?: number[];
}

export function wordsOf({ t0, t1 }: Window): string {
  return `${duration(t1 - t0)} from ${instant(t0)} on.`;
}

export async function placeOf(recording: Recording, about: About[]): Promise<Place | null> {
  const { timeline } = recording;
  if (!timeline) return null;
  const lanes = lanesOf(timeline, threadsOf(about));
  const span = about.find((one) => one.kind === "span");
  if (span) {
    const window = { t0: span.from_ns, t1: span.to_ns };
    const lane = await recording.laneAt?.(window.t0, threadsOf(about));
    return { ...window, words: wordsOf(window), lanes: lane == null ? [] : [lane] };
  }
  const reasons = reasonsOf(about);
  if (reasons.length > 0) {
    const found = (await inChains(recording, lanes, reasons)) ?? (await inSlices(recording, lanes, reasons));
    if (found) return found;
  }
  for (const name of statesOf(about)) {
    const state = timeline.states.findIndex((known) => known.name === name);
    const found = state < 0 ? null : await inState(recording, lanes, state);
    if (found) return found;
  }
  return null;
}

/** The lanes of threads, or of all vCPUs where none of them has one. */
function lanesOf(timeline: Timeline, threads: number[]): number[] {
  const lanes = timeline.lanes.filter(({ tid }) => tid !== null && threads.includes(tid)).map(({ id }) => id);
  return lanes.length > 0 ? lanes : vcpuLanes(timeline);
}

async function inChains(recording: Recording, lanes: number[], reasons: string[]): Promise<Place | null> {
  const { chains } = await recording.chains({ sort: "cost", descending: true, limit: CHAINS });
  let best: Place | null = null;
  let most = 0;
  for (const chain of chains.filter(({ lane }) => lanes.includes(lane))) {
    const hits = [chain.reason, ...chain.sequence].filter((reason) => reasons.includes(reason)).length;
    if (hits <= most) continue;
    most = hits;
    const cost = chain.cost_ns === null ? "" : ` of ${duration(chain.cost_ns)}`;
    best = {
      t0: chain.from_ns,
      t1: chain.to_ns,
      words: `A chain${cost} with ${hits} × ${reasons.join(" or ")}, at ${instant(chain.from_ns)}.`,
    };
  }
  return best;
}

function longest(slices: Slice[], wanted: (slice: Slice) => boolean): Slice | null {
  return slices
    .filter(wanted)
    .reduce<Slice | null>(
      (best, slice) => (best && best.to_ns - best.from_ns >= slice.to_ns - slice.from_ns ? best : slice),
      null,
    );
}

async function inSlices(recording: Recording, lanes: number[], reasons: string[]): Promise<Place | null> {
  const { span } = recording.timeline!;
  for (const lane of lanes) {
    const found = (await recording.slices([lane], span.from_ns, span.to_ns, SLICES)).get(lane);
    const slice = longest(found?.slices ?? [], ({ detail }) => reasons.includes(detail));
    if (slice) return placeAt(slice, `${slice.detail} for`);
  }
  return null;
}

async function inState(recording: Recording, lanes: number[], state: number): Promise<Place | null> {
  const { span, states } = recording.timeline!;
  const tile = await recording.tile(span.from_ns, span.to_ns, PIXELS, { lanes, means: [] });
  let best = { lane: -1, pixel: 0, cover: 0 };
  for (const { lane, cover } of tile.lanes) {
    if (!lanes.includes(lane)) continue;
    for (let pixel = 0; pixel < tile.width; pixel++) {
      const here = cover[pixel * tile.states + state]!;
      if (here > best.cover) best = { lane, pixel, cover: here };
    }
  }
  if (best.lane < 0) return null;
  const wide = (tile.t1 - tile.t0) / tile.width;
  const t0 = Math.floor(tile.t0 + best.pixel * wide);
  const t1 = Math.ceil(t0 + wide);
  const found = (await recording.slices([best.lane], t0, t1, SLICES)).get(best.lane);
  const slice = longest(found?.slices ?? [], (slice) => slice.state === state);
  const title = states[state]!.title;
  if (slice) return placeAt(slice, `${title} for`);
  return { t0, t1, words: `Most of "${title}" is at ${instant(t0)}.` };
}

function placeAt({ from_ns, to_ns }: Slice, what: string): Place {
  return {
    t0: from_ns,
    t1: to_ns,
    words: `${what} ${duration(to_ns - from_ns)}, at ${instant(from_ns)}.`,
  };
}
