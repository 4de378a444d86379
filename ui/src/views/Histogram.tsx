/** How one row's exits are spread: a bar per bin, with marks at p50 and p99, on the table's one log scale. */

import { type Bar, type Bin, barAt, bars } from "../maths/bins";
import { counted, duration } from "../maths/format";
import { logPlace } from "../maths/quantile";
import { number, type Row } from "../maths/rows";

/** In the units of the picture, which is as wide as its column. */
const HISTOGRAM_WIDTH = 116;
const HEIGHT = 22;

/** One path for all bars, and words for the one under the pointer: a table has thousands of bars. */
function boxOf({ left, width, height }: Bar): string {
  const wide = Math.max(1.5, width * HISTOGRAM_WIDTH - 0.8);
  const high = (HEIGHT - 4) * height;
  return `M${(left * HISTOGRAM_WIDTH).toFixed(1)} ${HEIGHT - 4}v${(-high).toFixed(1)}h${wide.toFixed(1)}v${high.toFixed(1)}z`;
}

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
      viewBox={`0 0 ${HISTOGRAM_WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      height={HEIGHT}
      role="img"
      aria-label={`Half within ${duration(p50)}, 99 % within ${duration(p99)}`}
      onPointerMove={(event) => {
        const svg = event.currentTarget;
        const box = svg.getBoundingClientRect();
        const bin = barAt(drawn, (event.clientX - box.left) / box.width)?.bin;
        svg.querySelector("title")!.textContent = bin
          ? `${counted(bin.count, "exit")} from ${duration(bin.from)} to ${duration(bin.to)}`
          : "";
      }}
    >
      <line x1="0" x2={HISTOGRAM_WIDTH} y1={HEIGHT - 3.5} y2={HEIGHT - 3.5} stroke="var(--line)" />
      <title />
      <path d={drawn.map(boxOf).join("")} fill="var(--soft)" />
      <path
        d={`M${x(p50)} ${HEIGHT - 4}v4`}
        stroke="var(--ink)"
        stroke-width="2"
        vector-effect="non-scaling-stroke"
      />
      <path
        d={`M${x(p99)} ${HEIGHT - 4}v4`}
        stroke="var(--ink)"
        stroke-width="2"
        vector-effect="non-scaling-stroke"
      />
    </svg>
  );
}
