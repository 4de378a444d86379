/** Distributions: empirical quantiles, log bins, and places on log axes. */

/** Smallest value with at least `share` of the samples at or below it. */
export function quantile(sorted: number[], share: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]!;
}

/** Place of a value between two others, both logged, 0 to 1. */
export function logPlace(value: number, from: number, to: number): number {
  if (to <= from) return 0;
  return Math.min(1, Math.max(0, Math.log(Math.max(from, value) / from) / Math.log(to / from)));
}

/** A quantile's place on an axis of nines: 0 is at 0, 0.9 at a third, 0.99 at two, 0.999 at three. */
export function ninesPlace(share: number, nines: number): number {
  return Math.min(1, -Math.log10(Math.max(1e-12, 1 - share)) / nines);
}

/** Powers of ten inside `[from, to]`. */
export function decades(from: number, to: number): number[] {
  const out: number[] = [];
  for (let power = Math.ceil(Math.log10(from) - 1e-9); 10 ** power <= to * 1.0001; power++)
    out.push(10 ** power);
  return out;
}

/** Powers of ten, with 2 and 5 times them where there are few. */
export function marks(from: number, to: number): number[] {
  const tens = decades(from, to);
  if (tens.length > 3) return tens;
  const all = decades(from / 10, to).flatMap((ten) => [ten, 2 * ten, 5 * ten]);
  return all.filter((mark) => mark >= from && mark <= to);
}

export interface Grid {
  columns: number;
  rows: number;
  from: number;
  to: number;
  counts: Uint32Array;
  most: number;
}

/** Counts samples by time and by the logarithm of their size. */
export function heat(
  samples: { at: number; size: number }[],
  t0: number,
  t1: number,
  columns: number,
  rows: number,
): Grid {
  const sizes = samples.map((sample) => Math.max(1, sample.size));
  const from = sizes.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const to = sizes.reduce((a, b) => Math.max(a, b), 1) * 1.001;
  const counts = new Uint32Array(columns * rows);
  let most = 0;
  for (const { at, size } of samples) {
    if (at < t0 || at >= t1) continue;
    const column = Math.min(columns - 1, Math.floor(((at - t0) / (t1 - t0)) * columns));
    const row = Math.min(rows - 1, Math.floor(logPlace(Math.max(1, size), from, to) * rows));
    const place = row * columns + column;
    counts[place] = counts[place]! + 1;
    most = Math.max(most, counts[place]!);
  }
  return { columns, rows, from, to, counts, most };
}
