/**
 * One picture's worth of time: for each lane and pixel the share of every state, which states occur, how many slices
 * it touches and which is longest.
 *
 * ```text
 * "KVTL" version flags t0 t1 width tracks states | lane cover[w][s] present[w] count[w] longest[w] | lane ...
 * ```
 * Little-endian without padding; the format stands in docs/use/serve.md.
 */

export interface TileLane {
  lane: number;
  /** Pixel `p`, state `s` at `p * states + s`; 255 is the whole pixel. */
  cover: Uint8Array;
  /** Bit `s` is set where state `s` occurs at all, however short. */
  present: Uint32Array;
  count: Uint16Array;
  /** Slice index, or `NONE`. */
  longest: Uint32Array;
}

export interface Tile {
  t0: number;
  t1: number;
  width: number;
  states: number;
  lanes: TileLane[];
}

export const NONE = 0xffffffff;
const MAGIC = 0x4c54564b;
const VERSION = 1;
const HEADER_BYTES = 32;

/** Reads a tile; throws a sentence where the bytes are not one. */
export function decodeTile(buffer: ArrayBuffer): Tile {
  if (buffer.byteLength < HEADER_BYTES) throw new Error("The tile ends inside its header.");
  const view = new DataView(buffer);
  if (view.getUint32(0, true) !== MAGIC) throw new Error("These bytes are no timeline tile.");
  const version = view.getUint16(4, true);
  if (version !== VERSION)
    throw new Error(`The tile has version ${version}; this page reads version ${VERSION}.`);
  const t0 = Number(view.getBigUint64(8, true));
  const t1 = Number(view.getBigUint64(16, true));
  const width = view.getUint32(24, true);
  const tracks = view.getUint16(28, true);
  const states = view.getUint16(30, true);
  const laneBytes = 4 + width * (states + 10);
  if (buffer.byteLength !== HEADER_BYTES + tracks * laneBytes) {
    throw new Error("The tile's length does not fit its header.");
  }
  const lanes: TileLane[] = [];
  for (let track = 0; track < tracks; track++) {
    let at = HEADER_BYTES + track * laneBytes;
    const lane = view.getUint32(at, true);
    at += 4;
    const take = (bytes: number) => {
      at += bytes;
      return buffer.slice(at - bytes, at);
    };
    lanes.push({
      lane,
      cover: new Uint8Array(take(width * states)),
      present: new Uint32Array(take(width * 4)),
      count: new Uint16Array(take(width * 2)),
      longest: new Uint32Array(take(width * 4)),
    });
  }
  return { t0, t1, width, states, lanes };
}

/** A tile without any slice, for windows outside the recording. */
export function emptyTile(t0: number, t1: number, width: number, states: number, lanes: number[]): Tile {
  return {
    t0,
    t1,
    width,
    states,
    lanes: lanes.map((lane) => ({
      lane,
      cover: new Uint8Array(width * states),
      present: new Uint32Array(width),
      count: new Uint16Array(width),
      longest: new Uint32Array(width).fill(NONE),
    })),
  };
}

/** Some lanes as one, lane 0, each with an equal share of it. */
export function meanLane(tile: Tile, some: number[]): Tile {
  const mean = emptyTile(tile.t0, tile.t1, tile.width, tile.states, [0]);
  const into = mean.lanes[0]!;
  const lanes = tile.lanes.filter((lane) => some.includes(lane.lane));
  for (let i = 0; i < into.cover.length; i++) {
    let sum = 0;
    for (const lane of lanes) sum += lane.cover[i]!;
    into.cover[i] = Math.round(sum / Math.max(1, lanes.length));
  }
  return mean;
}

/** A tile of several parts of equal width, each by itself. */
export function split(tile: Tile, parts: number): Tile[] {
  const { states, width: all, lanes } = tile;
  const width = all / parts;
  const span = (tile.t1 - tile.t0) / parts;
  return Array.from({ length: parts }, (_, i) => {
    const [from, to] = [i * width, (i + 1) * width];
    const part = (lane: TileLane): TileLane => ({
      lane: lane.lane,
      cover: lane.cover.slice(from * states, to * states),
      present: lane.present.slice(from, to),
      count: lane.count.slice(from, to),
      longest: lane.longest.slice(from, to),
    });
    return { t0: tile.t0 + i * span, t1: tile.t0 + (i + 1) * span, width, states, lanes: lanes.map(part) };
  });
}

/** Fills `into` pixel by pixel from a tile of any other window, weighting each source pixel by its overlap. */
export function resample(from: Tile, into: Tile): void {
  const fromPixel = (from.t1 - from.t0) / from.width;
  const intoPixel = (into.t1 - into.t0) / into.width;
  const sums = new Float64Array(into.states);
  for (const target of into.lanes) {
    const source = from.lanes.find((lane) => lane.lane === target.lane);
    if (!source) continue;
    for (let pixel = 0; pixel < into.width; pixel++) {
      const left = into.t0 + pixel * intoPixel;
      const right = left + intoPixel;
      const first = Math.max(0, Math.floor((left - from.t0) / fromPixel));
      const last = Math.min(from.width, Math.ceil((right - from.t0) / fromPixel));
      if (last <= first) continue;
      sums.fill(0);
      let count = 0;
      let present = 0;
      for (let p = first; p < last; p++) {
        const start = from.t0 + p * fromPixel;
        const overlap = Math.min(right, start + fromPixel) - Math.max(left, start);
        if (overlap <= 0) continue;
        const base = p * from.states;
        for (let s = 0; s < into.states; s++) sums[s] = sums[s]! + source.cover[base + s]! * overlap;
        count += source.count[p]! * (overlap / fromPixel);
        present |= source.present[p]!;
        target.longest[pixel] = source.longest[p]!;
      }
      for (let s = 0; s < into.states; s++) {
        target.cover[pixel * into.states + s] = Math.round(sums[s]! / intoPixel);
      }
      target.count[pixel] = Math.min(0xffff, Math.round(count));
      target.present[pixel] = present >>> 0;
    }
  }
}
