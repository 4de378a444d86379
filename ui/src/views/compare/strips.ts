/** What both timelines draw of each recording: a strip for each vCPU, or one for the mean of many. */
import type { Recording } from "../../data/source";
import { meanLane, type Tile } from "../../data/tile";
import { type Timeline, vcpuLanes } from "../../data/types";
import { duration, roundDuration } from "../../maths/format";
import { scaleOf } from "../../maths/scale";
import type { Window } from "../../maths/window";
import { lengthOf } from "./Names";

export const HEIGHT = 44;
export const GAP = 6;
/** Of a tile; the screen shows so many or fewer. */
export const PIXELS = 2048;
/** A side with more vCPUs is drawn as the mean of all. */
const LANES = 8;

export interface Side {
  recording: Recording;
  tile: Tile | null;
  /** Share of the vCPUs' time by the state's name. */
  shares: Map<string, number>;
}

export async function sideOf(recording: Recording, { t0, t1 }: Window): Promise<Side> {
  const { timeline } = recording;
  const lanes = vcpuLanes(timeline);
  const end = Math.min(t1, lengthOf(recording));
  if (!timeline || lanes.length === 0 || end <= t0) return { recording, tile: null, shares: new Map() };
  const from = timeline.span.from_ns;
  const [tile, sums] = await Promise.all([
    recording.tile(from + t0, from + t1, PIXELS, { lanes, means: [] }),
    recording.states(lanes, Math.floor(from + t0), Math.ceil(from + end)),
  ]);
  const each = [...(sums?.values() ?? [])];
  const all = timeline.states.map((_, s) => each.reduce((sum, of) => sum + (of[s] ?? 0), 0));
  const whole = Math.max(
    1,
    all.reduce((a, b) => a + b, 0),
  );
  return { recording, tile, shares: new Map(timeline.states.map(({ name }, s) => [name, all[s]! / whole])) };
}

/** The strips of a side, from above. */
export interface Strips {
  timeline: Timeline;
  rows: { lane: number; title: string; group: string }[];
  /** Has the lanes of all rows; null where nothing of it is in the window. */
  tile: Tile | null;
  height: number;
  /** Where it ends, if that is before the window does. */
  ends: string;
}

export function stripsOf({ recording, tile }: Pick<Side, "recording" | "tile">, window: Window): Strips {
  const timeline = recording.timeline!;
  const ids = vcpuLanes(timeline);
  const isMean = ids.length > LANES;
  const rows = isMean
    ? [{ lane: 0, title: `mean of ${ids.length} vCPUs`, group: "" }]
    : timeline.lanes
        .filter(({ id }) => ids.includes(id))
        .map(({ id, title, group }) => ({ lane: id, title, group }));
  const end = lengthOf(recording);
  const ends =
    end >= window.t1
      ? ""
      : end <= window.t0
        ? `${recording.id} ends before this window, after ${duration(end)}.`
        : `${recording.id} ends after ${duration(end)}.`;
  return {
    timeline,
    rows,
    tile: tile && isMean ? meanLane(tile, ids) : tile,
    height: rows.length * (HEIGHT + GAP) - GAP,
    ends,
  };
}

/** Marks of the scale that both share, as shares of its length: the last one has no room behind its mark. */
export function marksOf({ t0, t1 }: Window, width: number): { at: number; words: string; isLast: boolean }[] {
  const long = t1 - t0;
  const shown = scaleOf({ title: "", unit: "ns", logarithmic: false }, [long]).marks.filter(
    (mark) => mark <= long,
  );
  const every = Math.ceil((100 * shown.length) / width);
  return shown
    .filter((_, i) => i % every === 0)
    .map((mark) => ({
      at: mark / long,
      words: `${t0 > 0 ? "+" : ""}${roundDuration(mark)}`,
      isLast: mark > 0.88 * long,
    }));
}
