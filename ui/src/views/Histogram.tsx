/** How one row's exits are spread: a bar per bin, with marks at p50 and p99, on the table's one log scale. */

import { type Bin, bars } from "../maths/bins";
import { counted, duration } from "../maths/format";
import { logPlace } from "../maths/quantile";
import { number, type Row } from "../maths/rows";

const HISTOGRAM_WIDTH = 116;
const HEIGHT = 22;

interface Props {
  row: Row<"p50_ns" | "p99_ns">;
  bins: Bin[];
  axis: { from: number; to: number };
}

export function Histogram({ row, bins, axis }: Props) {
  const drawn = bars(bins, axis);
  const x = (ns: number) => HISTOGRAM_WIDTH * logPlace(ns, axis.from, axis.to);
  const [p50, p99] = [number(row, "p50_ns"), number(row, "p99_ns")];
  return (
    <svg
      class="spread"
      width={HISTOGRAM_WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`Half within ${duration(p50)}, 99 % within ${duration(p99)}`}
    >
      <line x1="0" x2={HISTOGRAM_WIDTH} y1={HEIGHT - 3.5} y2={HEIGHT - 3.5} stroke="var(--line)" />
      {drawn.map(({ bin, left, width, height }, i) => (
        <rect
          key={`${i}`}
          x={left * HISTOGRAM_WIDTH}
          width={Math.max(1.5, width * HISTOGRAM_WIDTH - 0.8)}
          y={(HEIGHT - 4) * (1 - height)}
          height={(HEIGHT - 4) * height}
          fill="var(--soft)"
        >
          <title>{`${counted(bin.count, "exit")} from ${duration(bin.from)} to ${duration(bin.to)}`}</title>
        </rect>
      ))}
      <path d={`M${x(p50)} ${HEIGHT - 4}v4`} stroke="var(--ink)" stroke-width="2" />
      <path d={`M${x(p99)} ${HEIGHT - 4}v4`} stroke="var(--ink)" stroke-width="2" />
    </svg>
  );
}
