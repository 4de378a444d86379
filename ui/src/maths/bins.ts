/** Histograms of exits, a row of bins each, on one logarithmic axis for the whole table. */
import { number, type Row, type RowOf, text } from "./rows";

export interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Columns that tables of exits have in common. */
const KEYS = ["machine", "vm", "vcpu", "level", "reason"] as const;

type Key = (typeof KEYS)[number];
type Counted = RowOf<"flow.exit_bins", Key | "from_ns" | "to_ns" | "count">;

export function keyOf(row: Row<Key>): string {
  // Of tens of thousands of rows: without a list for each.
  let key = text(row, KEYS[0]);
  for (let i = 1; i < KEYS.length; i++) key += `\t${text(row, KEYS[i]!)}`;
  return key;
}

/** Bins by the row of table `exits` that they belong to. */
export function binsByRow(rows: Counted[]): Map<string, Bin[]> {
  const out = new Map<string, Bin[]>();
  for (const row of rows) {
    const bins = out.get(keyOf(row)) ?? [];
    bins.push({ from: number(row, "from_ns"), to: number(row, "to_ns"), count: number(row, "count") });
    out.set(keyOf(row), bins);
  }
  return out;
}

/** The ends of an axis that holds all bins; a bin that begins at 0 does not stretch it. */
export function axisOf(all: Iterable<Bin[]>): { from: number; to: number } {
  let from = Number.POSITIVE_INFINITY;
  let to = 2;
  for (const bins of all) {
    for (const bin of bins) {
      from = Math.min(from, Math.max(1, bin.from > 0 ? bin.from : bin.to / 2));
      to = Math.max(to, bin.to);
    }
  }
  return { from: Math.min(from, to / 2), to };
}

export interface Bar {
  bin: Bin;
  /** Left edge, width and height in shares of the picture. */
  left: number;
  width: number;
  height: number;
}

/** Bars of a row: heights as square roots of counts, so that a tail of single exits shows beside thousands. */
export function bars(bins: Bin[], axis: { from: number; to: number }): Bar[] {
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const place = (ns: number) =>
    Math.min(1, Math.max(0, Math.log(Math.max(axis.from, ns) / axis.from) / Math.log(axis.to / axis.from)));
  return bins.map((bin) => {
    const left = place(bin.from);
    return { bin, left, width: place(bin.to) - left, height: Math.sqrt(bin.count / most) };
  });
}

/** The bar under a place, in shares of the picture. */
export function barAt(bars: Bar[], at: number): Bar | undefined {
  return bars.find(({ left, width }) => at >= left && at < left + width);
}
