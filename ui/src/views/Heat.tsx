/** Rows of cells along an axis: how much there is in each is its strength, what is not known is hatched. */
import { useRef } from "preact/hooks";
import type { HeatData } from "../data/types";
import { fillOf } from "../draw/tokens";
import { amount } from "../maths/format";
import { Picture } from "./Picture";
import { useWidth } from "./useSize";

const WIDTH = 1100;
const ROW = 20;
const LABELS = 150;

export function Heat({ title, drawn }: { title: string; drawn: HeatData }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(WIDTH, useWidth(box));
  const cells = Math.max(1, ...drawn.rows.map((row) => row.cells.length));
  const wide = (width - LABELS) / cells;
  const at = (cell: number) => amount(drawn.from + ((drawn.to - drawn.from) * cell) / cells, drawn.x.unit);
  const below = drawn.rows.length * ROW;
  return (
    <div ref={box}>
      <Picture title={title} width={width} height={below + 22}>
        {drawn.rows.map((row, i) => (
          <g key={row.label} transform={`translate(0 ${i * ROW})`}>
            <text x="0" y="14">
              {row.label}
            </text>
            {row.cells.map((value, cell) => (
              <rect
                key={at(cell)}
                x={LABELS + cell * wide}
                y="1"
                width={wide + 0.3}
                height={ROW - 2}
                fill={value === null ? fillOf("unknown") : "var(--ramp-1)"}
                fill-opacity={value === null ? 1 : strength(value, drawn.most)}
              >
                <title>{`${row.label}, ${at(cell)}: ${value === null ? "not known" : amount(value, drawn.unit)}`}</title>
              </rect>
            ))}
          </g>
        ))}
        <text class="faint" x={LABELS} y={below + 16}>
          {amount(drawn.from, drawn.x.unit)}
        </text>
        <text class="faint" x={width} y={below + 16} text-anchor="end">
          {amount(drawn.to, drawn.x.unit)}
        </text>
      </Picture>
      <p class="soft">
        {`${drawn.what}; the strongest from ${amount(drawn.most, drawn.unit)} on; hatched: not known`}
      </p>
    </div>
  );
}

/** What is there at all is seen. */
function strength(value: number, most: number): number {
  return value > 0 ? 0.15 + 0.85 * Math.min(1, value / most) : 0;
}
