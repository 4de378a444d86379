/** Stretches along an axis, a row each, and what they mean. */
import { useRef } from "preact/hooks";
import type { Key, Shape, SpanGroup, SpanRow } from "../data/types";
import { wrapped } from "../draw/frame";
import { hueOf } from "../draw/tokens";
import { squeezed, wideOf } from "../draw/words";
import { roundAmount } from "../maths/format";
import { type Scale, scaleOf } from "../maths/scale";
import { Axes } from "./Axes";
import { LegendEntry, PICTURE, Picture } from "./Picture";
import { Sign } from "./Sign";
import { useWidth } from "./useSize";

const ROW = 22;
const HEAD = 24;
/** Where the scale begins at most, and how much the notes behind it get; a narrow picture gives both less. */
const AT = 270;
const NOTES = 234;
/** A scale that would be shorter has the words above it, and notes are left to whoever points at a row. */
const SHORTEST = 150;
const ABOVE = 18;
const SMALL_SIZE = 11;
/** Lines of a note that is longer than its place. */
const LINE = 14;
const PAD = 16;
/** How much wider a note may be than was reckoned: words with an m are. */
const SLACK = 6;

/** Groups below each other; those of one quantity have one scale, of one length. */
export function Spans({ groups }: { groups: SpanGroup[] }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(PICTURE, useWidth(box));
  const places = placesOf(
    groups.flatMap(({ rows }) => rows),
    width,
  );
  return (
    <div ref={box}>
      {groups.map((group, i) => {
        const alike = groups.filter(
          ({ x }) =>
            x.title === group.x.title &&
            x.unit === group.x.unit &&
            (x.logarithmic ?? false) === (group.x.logarithmic ?? false),
        );
        return (
          <Group
            key={`${i} ${group.title}`}
            group={group}
            scale={scaleOf(group.x, alike.flatMap(valuesOf))}
            places={places}
            width={width}
          />
        );
      })}
    </div>
  );
}

interface Places {
  /** Words stand above the scale. */
  narrow: boolean;
  at: number;
  long: number;
  /** Letters of a line of a note. */
  letters: number;
}

/** Where the scale begins and how long it is, so that letters stay as large as they are. */
export function placesOf(rows: Pick<SpanRow, "label" | "value" | "note">[], width: number): Places {
  const labels = Math.max(0, ...rows.map(({ label, value }) => wideOf(`${label}  ${value}`) + 30));
  const at = Math.min(AT, Math.max(120, labels));
  const longest = Math.max(0, ...rows.map(({ note }) => wideOf(note, SMALL_SIZE)));
  // Of the note with most capitals, such as names of rules.
  const letter = Math.max(1, ...rows.map(({ note }) => wideOf(note, SMALL_SIZE) / Math.max(1, note.length)));
  const notes = Math.min(width >= PICTURE ? NOTES : NOTES * 0.7, longest);
  const long = width - at - (notes > 0 ? notes + SLACK + PAD : PAD);
  return long >= SHORTEST
    ? { narrow: false, at, long, letters: Math.floor(notes / letter) }
    : { narrow: true, at: 4, long: width - 12, letters: 0 };
}

function valuesOf({ rows, limits }: SpanGroup): number[] {
  return [
    ...rows.flatMap((row) => [
      ...row.stretches.flatMap(({ from, to }) => [from, to ?? from]),
      ...row.signs.map(({ at }) => at),
    ]),
    ...limits.map(({ value }) => value),
  ];
}

function Group({
  group: { title, x: axis, rows, limits },
  scale,
  places: { narrow, at: AT, long: LONG, letters },
  width,
}: {
  group: SpanGroup;
  scale: Scale;
  places: Places;
  width: number;
}) {
  const above = narrow ? ABOVE : 0;
  const x = (value: number) => AT + scale.place(value) * LONG;
  const notes = rows.map(({ note }) => (letters > 0 && note ? wrapped(note, letters) : []));
  const tops = [HEAD];
  for (const [i, lines] of notes.entries())
    tops.push(tops[i]! + ROW + above + LINE * Math.max(0, lines.length - 1));
  const bottom = tops.at(-1)!;
  const words = (value: number) => roundAmount(value, axis.unit);
  return (
    <Picture title={title} width={width} height={bottom + 38}>
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
            <Sign key={what} shape={shape} x={x(at)} y={above + 10} ink={inkOf(shape)} />
          ))}
          {notes[i]!.map((line, n) => (
            <text class="faint" key={n} x={AT + LONG + PAD} y={14 + n * LINE} font-size={SMALL_SIZE}>
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
  );
}

export function Keys({ keys }: { keys: Key[] }) {
  return (
    <ul class="keys">
      {keys.map(({ what, hue, shape }) => (
        <LegendEntry key={what} text={what}>
          {shape ? (
            <Sign shape={shape} x={12} y={6} ink={inkOf(shape)} />
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
  return squeezed(label, wide - wideOf(value) - 24);
}

/** What has no hue is so light that signs are seen on it. */
function look(hue: string) {
  return { fill: hue ? hueOf(hue) : "var(--line)", stroke: "var(--soft)", "stroke-width": 0.5 };
}

/** What others published stands behind what is ours. */
const inkOf = (shape: Shape) => (shape === "published" ? "var(--soft)" : "var(--ink)");
