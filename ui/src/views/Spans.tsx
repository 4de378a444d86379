/** Stretches along an axis, a row each, and what they mean. */
import { useRef } from "preact/hooks";
import type { Key, SpanGroup } from "../data/types";
import { wrapped } from "../draw/frame";
import { hueOf } from "../draw/tokens";
import { roundAmount } from "../maths/format";
import { scaleOf } from "../maths/scale";

import { Axes } from "./Axes";
import { LegendEntry, PICTURE, Picture } from "./Picture";
import { Sign } from "./Sign";
import { useWidth } from "./useSize";

const ROW = 22;
const HEAD = 24;
/** Where the scale begins and how long it is; notes stand behind it. */
const WIDE = { at: 270, long: 340 };
/** Below this, words stand above the scale, and notes are left to whoever points at a row. */
const NARROW = 600;
const ABOVE = 18;
/** A letter takes no more, and one of a note. */
const LETTER = 7.4;
const SMALL = 6.3;
/** Lines of a note that is longer than its place. */
const LINE = 14;

export function Spans({ group }: { group: SpanGroup }) {
  const { title, x: axis, rows, limits } = group;
  const scale = scaleOf(axis, [
    ...rows.flatMap((row) => [
      ...row.stretches.flatMap(({ from, to }) => [from, to ?? from]),
      ...row.signs.map(({ at }) => at),
    ]),
    ...limits.map(({ value }) => value),
  ]);
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(PICTURE, useWidth(box));
  const narrow = width < NARROW;
  const { at: AT, long: LONG } = narrow ? { at: 4, long: width - 12 } : WIDE;
  const above = narrow ? ABOVE : 0;
  const x = (value: number) => AT + scale.place(value) * LONG;
  const notes = rows.map(({ note }) => (narrow ? [] : wrapped(note, (PICTURE - AT - LONG - 16) / SMALL)));
  const tops = [HEAD];
  for (const [i, lines] of notes.entries())
    tops.push(tops[i]! + ROW + above + LINE * Math.max(0, lines.length - 1));
  const bottom = tops.at(-1)!;
  const words = (value: number) => roundAmount(value, axis.unit);
  return (
    <div ref={box}>
      <Picture title={title} width={narrow ? width : PICTURE} height={bottom + 38}>
        <text y="15" font-weight="600">
          {title}
        </text>
        <path d={scale.marks.map((mark) => `M${x(mark)} ${HEAD}V${bottom}`).join("")} stroke="var(--grid)" />
        <Axes
          left={AT}
          bottom={bottom}
          width={AT + LONG}
          up={{ title: "", ticks: [] }}
          along={{
            title: axis.title,
            ticks: scale.marks.map((mark) => ({ at: x(mark), text: words(mark) })),
          }}
        />
        {rows.map((it, i) => (
          <g key={i} transform={`translate(0 ${tops[i]})`}>
            <text y="14">
              <title>{`${it.label}. ${it.note}`}</title>
              {fitting(it.label, it.value, narrow ? width : AT)}
            </text>
            <text x={narrow ? width : AT - 12} y="14" text-anchor="end">
              {it.value}
            </text>
            {it.stretches.map(({ from, to, what, hue }, n) => (
              <rect
                key={n}
                x={x(from)}
                y={above + 3}
                width={Math.max(1.5, (to === null ? AT + LONG : x(to)) - x(from))}
                height={ROW - 8}
                {...look(hue)}
              >
                <title>{what}</title>
              </rect>
            ))}
            {it.signs.map(({ at, what, shape }) => (
              <Sign key={what} shape={shape} x={x(at)} y={above + 10} ink="var(--ink)" />
            ))}
            {notes[i]!.map((line, n) => (
              <text class="faint" key={n} x={AT + LONG + 16} y={14 + n * LINE} font-size="11">
                {line}
              </text>
            ))}
          </g>
        ))}
        {limits.map(({ label, value }) => (
          <g key={label}>
            <path d={`M${x(value)} ${HEAD - 4}V${bottom}`} stroke="var(--ink)" stroke-dasharray="2 3" />
            <text x={x(value)} y={HEAD - 8} text-anchor="middle">
              {`${label}, ${words(value)}`}
            </text>
          </g>
        ))}
      </Picture>
    </div>
  );
}

export function Keys({ keys }: { keys: Key[] }) {
  return (
    <ul class="keys">
      {keys.map(({ what, hue, shape }) => (
        <LegendEntry key={what} text={what}>
          {shape ? (
            <Sign shape={shape} x={12} y={6} ink="var(--ink)" />
          ) : (
            <rect width="24" height="12" {...look(hue!)} />
          )}
        </LegendEntry>
      ))}
    </ul>
  );
}

/** A label that leaves the number behind it readable. */
function fitting(label: string, value: string, wide: number): string {
  const room = Math.floor((wide - 24) / LETTER) - value.length;
  return label.length > room ? `${label.slice(0, room - 1)}…` : label;
}

/** What has no hue is so light that signs are seen on it. */
function look(hue: string) {
  return { fill: hue ? hueOf(hue) : "var(--line)", stroke: "var(--soft)", "stroke-width": 0.5 };
}
