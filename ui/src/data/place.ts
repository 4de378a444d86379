/**
 * Where on the timeline a piece of evidence can be seen: the worst instant of what it is about.
 *
 * ```text
 * threads -> their lanes, else those of all vCPUs
 * span    -> itself; of a thread without a lane of its own, on the CPU that it was on
 * reasons -> the most expensive chain with most of them, else the longest slice that was left for one
 * states  -> the longest slice in it, else the pixels with most of it
 * ```
 */
import { reasonsOf, statesOf, threadsOf } from "../maths/about";
import { duration, instant } from "../maths/format";
import type { Window } from "../maths/window";
import type { Recording } from "./source";
import type { Tile } from "./tile";
import { type About, type Slice, type Timeline, vcpuLanes } from "./types";

const CHAINS = 200;
const SLICES = 10_000;
const PIXELS = 2048;
/** Requests for slices that are as long as each other, as far as pixels tell. */
const RUNS = 64;

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
  const all: Slice[] = [];
  for (const lane of lanes) {
    const found = (await recording.slices([lane], span.from_ns, span.to_ns, SLICES)).get(lane);
    all.push(...(found?.slices ?? []));
  }
  const slice = longest(all, ({ detail }) => reasons.includes(detail));
  return slice && placeAt(slice, `${slice.detail} for`);
}

/** A slice as the pixels of a tile have it: in a row of them it is the longest, and they have so much of the state. */
interface Run {
  lane: number;
  first: number;
  last: number;
  cover: number;
  /** All slices in its pixels, of whatever state. */
  slices: number;
}

/** A whole pixel. */
const FULL = 255;

/** Runs of pixels whose longest slice is the same one: those with most of the state first. */
export function runsOf({ lanes, width, states }: Tile, some: number[], state: number): Run[] {
  const runs: Run[] = [];
  for (const { lane, cover, longest, count } of lanes) {
    if (!some.includes(lane)) continue;
    let run: Run | null = null;
    for (let pixel = 0; pixel < width; pixel++) {
      const here = cover[pixel * states + state]!;
      if (run && run.last === pixel - 1 && longest[pixel] === longest[run.first]) {
        run.last = pixel;
        run.cover += here;
        run.slices += count[pixel]!;
      } else {
        run = { lane, first: pixel, last: pixel, cover: here, slices: count[pixel]! };
        runs.push(run);
      }
    }
  }
  return runs.filter(({ cover }) => cover > 0).sort((a, b) => b.cover - a.cover);
}

/** The first of them, as many as a server can be asked for; one at least. */
function within(runs: Run[]): Run[] {
  let slices = 0;
  return runs.slice(0, RUNS).filter((run, i) => {
    slices += run.slices;
    return i === 0 || slices <= SLICES;
  });
}

async function inState(recording: Recording, lanes: number[], state: number): Promise<Place | null> {
  const { span, states } = recording.timeline!;
  const tile = await recording.tile(span.from_ns, span.to_ns, PIXELS, { lanes, means: [] });
  const runs = runsOf(tile, lanes, state);
  const [most] = runs;
  if (!most) return null;
  // At either end pixels tell a slice no better than to one of them: which of these is the longest, the slices tell.
  const near = within(runs.filter(({ cover }) => cover > most.cover - 2 * FULL));
  const wide = (tile.t1 - tile.t0) / tile.width;
  const windowOf = ({ first, last }: Run) => ({
    t0: Math.floor(tile.t0 + first * wide),
    t1: Math.ceil(tile.t0 + (last + 1) * wide),
  });
  const found = await Promise.all(
    near.map(async (run) => {
      const { t0, t1 } = windowOf(run);
      return (await recording.slices([run.lane], t0, t1, SLICES)).get(run.lane)?.slices ?? [];
    }),
  );
  const slice = longest(found.flat(), (slice) => slice.state === state);
  const title = states[state]!.title;
  if (slice) return placeAt(slice, `${title} for`);
  const { t0, t1 } = windowOf(most);
  return { t0, t1, words: `Most of "${title}" is at ${instant(t0)}.` };
}

function placeAt({ from_ns, to_ns }: Slice, what: string): Place {
  return {
    t0: from_ns,
    t1: to_ns,
    words: `${what} ${duration(to_ns - from_ns)}, at ${instant(from_ns)}.`,
  };
}
