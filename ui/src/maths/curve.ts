/** Quantile curves: of all chains by exact quantiles, of exits by the bins that count each of them. */
import type { Bin } from "./bins";

export interface Curve {
  title: string;
  count: number;
  /** Share and the value that so many do not exceed. */
  points: [number, number][];
  /** Exact at its points; else each is the upper end of a bin. */
  whole: boolean;
}

/** The last of so many lies half a sample before the end of an axis that never reaches 1. */
function lastOf(count: number): number {
  return 1 - 0.5 / Math.max(1, count);
}

/** A curve of exact quantiles, or none. */
export function curveOfShares(title: string, shares: [number, number][], count: number): Curve[] {
  if (shares.length === 0) return [];
  const points = shares.map(([share, value]): [number, number] => [Math.min(share, lastOf(count)), value]);
  return [{ title, count, points, whole: true }];
}

/** A curve of bins, none of it beyond the longest that was measured; no curve without a bin. */
export function curveOfBins(title: string, bins: Bin[], longest: number): Curve[] {
  const count = bins.reduce((sum, bin) => sum + bin.count, 0);
  if (count === 0) return [];
  let before = 0;
  const points = bins.map((bin): [number, number] => {
    before += bin.count;
    return [Math.min(before / count, lastOf(count)), longest > 0 ? Math.min(bin.to, longest) : bin.to];
  });
  return [{ title, count, points, whole: false }];
}

/** Whole decades around all values above zero; null where there is none, because a log axis cannot show it. */
export function rangeOf(curves: Curve[]): { from: number; to: number } | null {
  const values = curves
    .flatMap(({ points }) => points.map(([, value]) => value))
    .filter((value) => value > 0);
  if (values.length === 0) return null;
  const from = 10 ** Math.floor(Math.log10(Math.min(...values)));
  const to = 10 ** Math.ceil(Math.log10(Math.max(...values)));
  return { from, to: Math.max(to, from * 10) };
}

/**
 * A curve as an SVG path: a line between exact quantiles, up to the last one below the longest value, which is a dot by itself: what
 * lies between those two is not known. A bin's exits are somewhere in it, so they are a step at its upper end.
 */
export function pathOf(
  { points, whole }: Curve,
  x: (share: number) => number,
  y: (value: number) => number,
): string {
  return points
    .slice(0, whole ? -1 : undefined)
    .map(([share, value], i) => {
      const [to, at] = [x(share).toFixed(1), y(value).toFixed(1)];
      if (i === 0) return whole ? `M${to} ${at}` : `M${x(0)} ${at}H${to}`;
      return whole ? `L${to} ${at}` : `V${at}H${to}`;
    })
    .join("");
}

/** Places of labels beside `wanted` ones: each there or below, and none nearer than `gap` to the next. */
export function apart(wanted: number[], gap: number): number[] {
  const places: number[] = [];
  let last = Number.NEGATIVE_INFINITY;
  for (const i of wanted.map((_, i) => i).sort((a, b) => wanted[a]! - wanted[b]!)) {
    last = Math.max(wanted[i]!, last + gap);
    places[i] = last;
  }
  return places;
}
