/**
 * Where on the timeline a sentence can be seen: the worst instant of what it names.
 *
 * ```text
 * words -> reasons -> the most expensive chain with most of them, else the longest slice that was left for one
 *       -> states  -> the pixel with most of it, in that pixel the longest slice
 * ```
 */
import { duration, instant } from "../maths/format";
import { reasonsIn, statesIn } from "../maths/named";
import type { Recording } from "./source";
import { type Slice, vcpuLanes } from "./types";

const CHAINS = 200;
const SLICES = 10_000;
const PIXELS = 2048;

export interface Place {
  t0: number;
  t1: number;
  lane: number;
  /** What lies there. */
  words: string;
}

export async function placeOf(recording: Recording, words: string): Promise<Place | null> {
  const { timeline, report } = recording;
  if (!timeline) return null;
  const reasons = reasonsIn(words, report);
  if (reasons.length > 0) {
    const found = (await inChains(recording, reasons)) ?? (await inSlices(recording, reasons));
    if (found) return found;
  }
  for (const name of statesIn(words, timeline.states)) {
    const found = await inState(
      recording,
      timeline.states.findIndex((state) => state.name === name),
    );
    if (found) return found;
  }
  return null;
}

async function inChains(recording: Recording, reasons: string[]): Promise<Place | null> {
  const { chains } = await recording.chains({ sort: "cost", descending: true, limit: CHAINS });
  let best: Place | null = null;
  let most = 0;
  for (const chain of chains) {
    const hits = [chain.reason, ...chain.sequence].filter((reason) => reasons.includes(reason)).length;
    if (hits <= most) continue;
    most = hits;
    const cost = chain.cost_ns === null ? "" : ` of ${duration(chain.cost_ns)}`;
    best = {
      t0: chain.from_ns,
      t1: chain.to_ns,
      lane: chain.lane,
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

async function inSlices(recording: Recording, reasons: string[]): Promise<Place | null> {
  const { span } = recording.timeline!;
  for (const lane of vcpuLanes(recording.timeline)) {
    const found = await recording.slices(lane, span.from_ns, span.to_ns, SLICES);
    const slice = longest(found?.slices ?? [], ({ detail }) =>
      reasons.some((reason) => detail.startsWith(reason)),
    );
    if (slice) return placeAt(slice, lane, `${slice.detail} for`);
  }
  return null;
}

async function inState(recording: Recording, state: number): Promise<Place | null> {
  const { span, states } = recording.timeline!;
  const tile = await recording.tile(span.from_ns, span.to_ns, PIXELS);
  let best = { lane: -1, pixel: 0, cover: 0 };
  const vcpus = vcpuLanes(recording.timeline);
  for (const { lane, cover } of tile.lanes) {
    if (!vcpus.includes(lane)) continue;
    for (let pixel = 0; pixel < tile.width; pixel++) {
      const here = cover[pixel * tile.states + state]!;
      if (here > best.cover) best = { lane, pixel, cover: here };
    }
  }
  if (best.lane < 0) return null;
  const wide = (tile.t1 - tile.t0) / tile.width;
  const t0 = Math.floor(tile.t0 + best.pixel * wide);
  const t1 = Math.ceil(t0 + wide);
  const found = await recording.slices(best.lane, t0, t1, SLICES);
  const slice = longest(found?.slices ?? [], (slice) => slice.state === state);
  const title = states[state]!.title;
  if (slice) return placeAt(slice, best.lane, `${title} for`);
  return { t0, t1, lane: best.lane, words: `Most of "${title}" is at ${instant(t0)}.` };
}

function placeAt({ from_ns, to_ns }: Slice, lane: number, what: string): Place {
  return {
    t0: from_ns,
    t1: to_ns,
    lane,
    words: `${what} ${duration(to_ns - from_ns)}, at ${instant(from_ns)}.`,
  };
}
