/**
 * A lane as stacked coverage: every pixel column shows the exact share of each state, deeper levels on top.
 *
 * ```text
 * tile pixels (2^k ns)  ->  screen pixels: sum of overlaps  ->  column of rows, largest remainder  ->  ImageData
 * ```
 * A state that occurs but whose share rounds to nothing is a tick in a strip of its own at the lane's lower edge: it covers
 * no share.
 */
import type { Tile } from "../data/tile";

/** Shares of a window, `pixels * states` sums that are 1 for a fully known pixel, and the `present` bits. */
export interface Coverage {
  share: Float32Array;
  present: Uint32Array;
  count: Uint32Array;
}

/** What one lane did in `[t0, t1)`, from tiles that are drawn over each other, the last one on top. */
export function coverageOf(tiles: Tile[], lane: number, t0: number, t1: number, pixels: number): Coverage {
  const states = tiles[0]?.states ?? 0;
  const share = new Float32Array(pixels * states);
  const present = new Uint32Array(pixels);
  const count = new Uint32Array(pixels);
  const pixelNs = (t1 - t0) / pixels;
  const filled = new Float32Array(pixels);
  // Fine tiles come last; what they fill, coarse ones do not add to.
  for (const tile of [...tiles].reverse()) {
    const source = tile.lanes.find((candidate) => candidate.lane === lane);
    if (!source) continue;
    const tileNs = (tile.t1 - tile.t0) / tile.width;
    const first = Math.max(0, Math.floor((tile.t0 - t0) / pixelNs));
    const last = Math.min(pixels, Math.ceil((tile.t1 - t0) / pixelNs));
    for (let pixel = first; pixel < last; pixel++) {
      if (filled[pixel]! > 0.999) continue;
      const left = Math.max(t0 + pixel * pixelNs, tile.t0);
      const right = Math.min(t0 + (pixel + 1) * pixelNs, tile.t1);
      const room = 1 - filled[pixel]!;
      const part = Math.min(room, (right - left) / pixelNs);
      if (part <= 0) continue;
      const from = Math.floor((left - tile.t0) / tileNs);
      const to = Math.min(tile.width, Math.max(from + 1, Math.ceil((right - tile.t0) / tileNs)));
      const width = right - left;
      for (let p = from; p < to; p++) {
        const start = tile.t0 + p * tileNs;
        const overlap = Math.min(right, start + tileNs) - Math.max(left, start);
        if (overlap <= 0) continue;
        const weight = ((overlap / width) * part) / 255;
        for (let s = 0; s < states; s++) {
          share[pixel * states + s] = share[pixel * states + s]! + source.cover[p * states + s]! * weight;
        }
        present[pixel] = (present[pixel]! | source.present[p]!) >>> 0;
        count[pixel] = count[pixel]! + source.count[p]!;
      }
      filled[pixel] = filled[pixel]! + part;
    }
  }
  return { share, present, count };
}

/** About how many slices of a lane the window touches, from the finest tiles. */
export function slicesIn(tiles: Tile[], lane: number, t0: number, t1: number): number {
  const fine = Math.min(...tiles.map((tile) => (tile.t1 - tile.t0) / tile.width));
  let slices = 1;
  for (const tile of tiles) {
    const source = tile.lanes.find((candidate) => candidate.lane === lane);
    if (!source || (tile.t1 - tile.t0) / tile.width > fine) continue;
    const first = Math.max(0, Math.floor((t0 - tile.t0) / fine));
    const last = Math.min(tile.width, Math.ceil((t1 - tile.t0) / fine));
    // A slice that spans two pixels is counted in both.
    for (let p = first; p < last; p++) slices += Math.max(0, source.count[p]! - 1);
  }
  return slices;
}

/** Rows of a column for each share, in `order`: whole rows that sum to at most `height`, by largest remainder. */
export function rowsFor(
  shares: ArrayLike<number>,
  base: number,
  order: number[],
  height: number,
  into: Uint16Array,
) {
  let known = 0;
  for (const s of order) known += shares[base + s]!;
  const total = Math.min(height, Math.round(known * height));
  let used = 0;
  for (const s of order) {
    into[s] = Math.floor(shares[base + s]! * height);
    used += into[s]!;
  }
  while (used < total) {
    let best = -1;
    let most = -1;
    for (const s of order) {
      const rest = shares[base + s]! * height - into[s]!;
      if (rest > most) {
        most = rest;
        best = s;
      }
    }
    if (best < 0) break;
    into[best] = into[best]! + 1;
    used++;
  }
}

export interface Textures {
  size: number;
  /** Pixels of each state's pattern. */
  of: Uint32Array[];
}

/** Height of the strip of ticks below a lane's shares. */
export function tickRows(height: number): number {
  return Math.min(4, Math.max(2, Math.round(height / 20)));
}

/** Paints coverage into `pixels`, a `width` wide image, rows `[top, top + height)`. */
export function paintCoverage(
  pixels: Uint32Array,
  width: number,
  top: number,
  height: number,
  coverage: Coverage,
  order: number[],
  textures: Textures,
): void {
  const states = order.length;
  const rows = new Uint16Array(states);
  const tick = tickRows(height);
  const high = height - tick;
  const { size } = textures;
  for (let x = 0; x < width; x++) {
    rowsFor(coverage.share, x * states, order, high, rows);
    let y = top + high;
    // From the bottom up, so that the deepest level is on top and unknown time lies below it.
    for (let place = order.length - 1; place >= 0; place--) {
      const s = order[place]!;
      const texture = textures.of[s]!;
      for (let n = rows[s]!; n > 0; n--) {
        y--;
        pixels[y * width + x] = texture[(y % size) * size + (x % size)]!;
      }
    }
    const present = coverage.present[x]!;
    if (present === 0) continue;
    for (let place = 0; place < order.length; place++) {
      const s = order[place]!;
      if (rows[s]! > 0 || (present & (1 << s)) === 0) continue;
      const texture = textures.of[s]!;
      for (let n = 0; n < tick; n++) {
        pixels[(top + height - 1 - n) * width + x] = texture[0]!;
      }
      break;
    }
  }
}
