/** Pairs of numbers before and after: fill says how sure the difference is, shape where the numbers come from. */
import { useRef } from "preact/hooks";
import type { Dumbbell, DumbbellGroup, Mark, Sure } from "../data/types";
import { hueOf } from "../draw/tokens";
import { dumbbellScale } from "../maths/dumbbells";
import { amount, roundAmount } from "../maths/format";
import { LegendEntry, Picture } from "./Picture";
import { useWidth } from "./useSize";

const WIDTH = 980;
const ROW = 24;
const HEAD = 26;
/** Below this the words of a row stand above its picture. */
const NARROW = 640;
/** Room for names, for numbers before and after, and for the change. */
const NAMES = 210;
const NUMBERS = 190;
const CHANGES = 74;

export function Dumbbells({
  groups,
  looks,
}: {
  groups: DumbbellGroup[];
  looks: { what: string; mark: Mark; sure: Sure }[];
}) {
  const rims = groups.some(({ rows }) => rows.some(({ low }) => low !== null));
  return (
    <>
      {groups.map((group) => (
        <Group key={group.title} group={group} />
      ))}
      <ul class="keys">
        <LegendEntry text="before">
          <path d="M12 0V12" stroke="var(--ink)" stroke-width="3" />
        </LegendEntry>
        {looks.map(({ what, mark, sure }) => (
          <LegendEntry key={what} text={what}>
            <After mark={mark} sure={sure} x={12} y={6} hue="var(--soft)" />
          </LegendEntry>
        ))}
        {rims && (
          <LegendEntry text="95 % interval of the number after">
            <rect y="3" width="24" height="6" fill="var(--line)" />
          </LegendEntry>
        )}
      </ul>
    </>
  );
}

function Group({ group }: { group: DumbbellGroup }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(WIDTH, useWidth(box));
  const narrow = width < NARROW;
  const row = narrow ? ROW + 18 : ROW;
  const left = narrow ? 8 : NAMES + NUMBERS + CHANGES + 14;
  const right = width - 10;
  const scale = dumbbellScale(group);
  const x = (value: number) => left + scale.place(value) * (right - left);
  const bottom = HEAD + group.rows.length * row;
  const every = Math.ceil((70 * scale.marks.length) / (right - left));
  return (
    <div ref={box}>
      <Picture title={group.title} width={width} height={bottom + 22}>
        <text y="15" font-weight="600">
          {group.title}
        </text>
        {group.x.logarithmic && !narrow && (
          <text class="faint" x={right} y="15" text-anchor="end">
            {group.x.title}
          </text>
        )}
        <path d={scale.marks.map((mark) => `M${x(mark)} ${HEAD}V${bottom}`).join("")} stroke="var(--grid)" />
        {scale.marks.map((mark, i) =>
          i % every === 0 ? (
            <text
              key={mark}
              class="faint"
              x={x(mark)}
              y={bottom + 16}
              text-anchor={i === 0 ? "start" : i === scale.marks.length - 1 ? "end" : "middle"}
            >
              {roundAmount(mark, group.x.unit)}
            </text>
          ) : null,
        )}
        {group.rows.map((it, i) => (
          <g key={it.label} transform={`translate(0 ${HEAD + i * row})`}>
            <title>{`${it.label}: ${amount(it.before, group.x.unit)} before, ${amount(it.after, group.x.unit)} after; ${it.verdict}, ${it.mark}`}</title>
            <Words row={it} unit={group.x.unit} narrow={narrow} width={width} />
            <Pair row={it} x={x} y={row - ROW / 2} />
          </g>
        ))}
      </Picture>
    </div>
  );
}

function Words({
  row,
  unit,
  narrow,
  width,
}: {
  row: Dumbbell;
  unit: string;
  narrow: boolean;
  width: number;
}) {
  const soft = row.sure === "noise" ? "faint" : "";
  const numbers = `${amount(row.before, unit)} → ${amount(row.after, unit)}`;
  const room = narrow ? Math.floor((width - 190) / 7) : 31;
  const name = row.label.length > room ? `${row.label.slice(0, Math.max(1, room - 1))}…` : row.label;
  return (
    <>
      <text class={soft} y="15">
        {name}
      </text>
      <text class={soft} x={narrow ? width - 66 : NAMES + NUMBERS} y="15" text-anchor="end">
        {numbers}
      </text>
      <text
        class={soft}
        x={narrow ? width : NAMES + NUMBERS + CHANGES}
        y="15"
        text-anchor="end"
        font-weight={soft ? 400 : 600}
      >
        {row.change}
      </text>
    </>
  );
}

function Pair({ row, x, y }: { row: Dumbbell; x: (value: number) => number; y: number }) {
  const { before, after, low, high } = row;
  return (
    <>
      {low !== null && high !== null && (
        <rect x={x(low)} y={y - 3} width={Math.max(0, x(high) - x(low))} height="6" fill="var(--line)" />
      )}
      <path d={`M${x(before)} ${y}H${x(after)}`} stroke="var(--ink)" stroke-width="2" />
      <path d={`M${x(before)} ${y - 7}V${y + 7}`} stroke="var(--ink)" stroke-width="3" />
      <After mark={row.mark} sure={row.sure} x={x(after)} y={y} hue={hueOf(row.hue)} />
    </>
  );
}

/** A circle is measured, a square emulated, a diamond modelled; `half` is half its size. */
function outline(mark: Mark, half: number): string {
  if (mark === "measured")
    return `M-${half} 0a${half} ${half} 0 1 0 ${2 * half} 0a${half} ${half} 0 1 0 -${2 * half} 0`;
  if (mark === "emulated") return `M-${half} -${half}H${half}V${half}H-${half}Z`;
  return `M-${half} 0L0 -${half}L${half} 0L0 ${half}Z`;
}

/** The number after: full where it changed, a core in a rim where two runs differ, hollow where noise could explain it, crossed where void. */
function After({ mark, sure, x, y, hue }: { mark: Mark; sure: Sure; x: number; y: number; hue: string }) {
  const full = sure === "changed";
  return (
    <g transform={`translate(${x} ${y})`}>
      <path
        d={outline(mark, sure === "two runs" ? 6 : 5)}
        fill={full ? hue : "var(--page)"}
        stroke="var(--ink)"
        stroke-width={full ? 1 : 1.6}
        stroke-dasharray={sure === "unknown" ? "2 2" : undefined}
      />
      {sure === "two runs" && <path d={outline(mark, 3)} fill={hue} stroke="var(--ink)" />}
      {sure === "void" && <path d="M-5 -5L5 5M-5 5L5 -5" stroke="var(--ink)" stroke-width="1.6" />}
    </g>
  );
}
