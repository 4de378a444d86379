/** Rows of cells along an axis: how much there is in each is its strength, what is not known is hatched. */
import { useRef, useState } from "preact/hooks";
import type { HeatData } from "../data/types";
import { fillOf } from "../draw/tokens";
import { squeezed, wideOf } from "../draw/words";
import { amount, grouped, roundAmount } from "../maths/format";
import { scaleOf } from "../maths/scale";
import { Picture } from "./Picture";
import { useWidth } from "./useSize";

const WIDTH = 1100;
const ROW = 20;
/** Names take what they need, and no more than this share; a longer one loses its middle. */
const NAMES = 0.28;
const GAP = 10;
/** A mark of the axis takes this much. */
const MARK = 90;

/** Rows that are drawn at first, the worst; the others are one press away. */
const OPEN = 20;

export function Heat({ title, drawn: { rows: all, ...rest } }: { title: string; drawn: HeatData }) {
  const [isOpen, setOpen] = useState(false);
  const drawn = { ...rest, rows: isOpen || all.length <= OPEN + 1 ? all : all.slice(0, OPEN) };
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(WIDTH, useWidth(box));
  const cells = Math.max(1, ...drawn.rows.map((row) => row.cells.length));
  const longest = Math.max(...drawn.rows.map(({ label }) => wideOf(label)), 0);
  const names = Math.ceil(Math.min(longest, NAMES * width));
  const left = names + GAP;
  const wide = (width - left) / cells;
  const at = (cell: number) => amount(drawn.from + ((drawn.to - drawn.from) * cell) / cells, drawn.x.unit);
  const below = drawn.rows.length * ROW;
  const along = (value: number) =>
    left + ((value - drawn.from) / (drawn.to - drawn.from || 1)) * (width - left);
  const every = Math.ceil((MARK * 6) / (width - left));
  const marks = scaleOf({ ...drawn.x, logarithmic: false }, [drawn.to - drawn.from])
    .marks.map((mark) => drawn.from + mark)
    .filter((mark, i) => i % every === 0 && mark <= drawn.to);
  return (
    <div ref={box}>
      <Picture title={title} width={width} height={below + 22}>
        {drawn.rows.map((row, i) => (
          <g key={row.label} transform={`translate(0 ${i * ROW})`}>
            <text x="0" y="14">
              <title>{row.label}</title>
              {squeezed(row.label, names)}
            </text>
            {row.cells.map((value, cell) => (
              <rect
                key={at(cell)}
                x={left + cell * wide}
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
        {marks.map((mark) => (
          <g key={mark}>
            <path d={`M${along(mark)} 0V${below + 4}`} stroke="var(--soft)" stroke-opacity="0.45" />
            <text
              class="faint"
              x={along(mark)}
              y={below + 16}
              text-anchor={mark === drawn.from ? "start" : along(mark) > width - 30 ? "end" : "middle"}
            >
              {roundAmount(mark, drawn.x.unit)}
            </text>
          </g>
        ))}
      </Picture>
      {all.length > OPEN + 1 && (
        <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? `Show the first ${OPEN}` : `Show ${grouped(all.length - OPEN)} more`}
        </button>
      )}
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
