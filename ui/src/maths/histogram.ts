/** Heights and places in a histogram of a Section (base::figure::Histogram): a single one is seen beside a million. */
import type { HistogramData } from "../data/types";

type Bin = HistogramData["bins"][number];

export function totalOf({ counts }: Bin): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The decade that the highest bin reaches into. */
export function decadesOf(bins: Bin[]): number {
  const most = bins.reduce((most, bin) => Math.max(most, totalOf(bin)), 1);
  let decades = 0;
  while (10 ** decades < most) decades++;
  return decades;
}

/** From 0 to 1: a single one is as high as every further decade. */
export function heightOf(count: number, decades: number): number {
  return count > 0 ? (1 + Math.log10(count)) / (1 + decades) : 0;
}

/** Where a length lies across the bins, from 0 to 1. */
export function placeIn(bins: Bin[], length: number): number {
  const at = bins.findLastIndex(({ from }) => from <= length);
  if (at < 0) return 0;
  const { from, to } = bins[at]!;
  return (at + Math.min(1, (length - from) / Math.max(to - from, Number.MIN_VALUE))) / bins.length;
}
