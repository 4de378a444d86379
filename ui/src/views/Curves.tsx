/** Curves on one pair of axes, with the limits that they are held against. */
import { useRef } from "preact/hooks";
import type { Axis, Curve, CurvesData, Shape } from "../data/types";
import { CURVE_DASHES } from "../draw/tokens";
import { wideOf } from "../draw/words";
import { roundAmount } from "../maths/format";
import { type Box, freest, type Line } from "../maths/labels";
import { marksAlong, scaleOf } from "../maths/scale";
import { Axes, type Tick } from "./Axes";
import { LegendEntry, PICTURE, Picture } from "./Picture";
import { Sign } from "./Sign";
import { useWidth } from "./useSize";

const HEIGHT = 260;
/** Room for the values of the axis up the page, and below for those along it. */
const LEFT = 78;
const TOP = 22;
const BELOW = 38;
/** Height of a line of words. */
const WORDS = 15;
/** A limit that ends before this share of the picture has its words behind its end. */
const SHORT = 0.6;

export function Curves({ title, drawn }: { title: string; drawn: CurvesData }) {
  const box = useRef<HTMLDivElement>(null);
  const width = Math.min(PICTURE, useWidth(box));
  const points = drawn.curves.flatMap((curve) => curve.points);
  const limits = (on: "x" | "y") => drawn.limits.filter((limit) => limit.on === on).map(({ value }) => value);
  const across = scaleOf(drawn.x, [...points.map(([x]) => x), ...limits("x")]);
  const up = scaleOf(drawn.y, [...points.map(([, y]) => y), ...limits("y")]);
  const x = (value: number) => LEFT + across.place(value) * (width - LEFT - 14);
  const y = (value: number) => TOP + (1 - up.place(value)) * HEIGHT;
  return (
    <div ref={box}>
      <Picture title={title} width={width} height={TOP + HEIGHT + BELOW}>
        <Axes
          left={LEFT}
          bottom={TOP + HEIGHT}
          width={width}
          up={{ title: drawn.y.title, ticks: ticks(drawn.y, up.marks, y) }}
          along={{ title: drawn.x.title, ticks: ticks(drawn.x, marksAlong(drawn, across), x) }}
        />
        {drawn.curves
          .map((curve, i) => <Drawn key={curve.label} drawn={drawn} place={i} x={x} y={y} />)
          .reverse()}
        {limitsOf(drawn, x, y, width).map(({ path, words: text, at }) => (
          <g class="on-lines" key={text}>
            <path d={path} stroke="var(--ink)" />
            <text x={at.x} y={at.y + WORDS - 4}>
              {text}
            </text>
          </g>
        ))}
      </Picture>
      <Legend drawn={drawn} />
    </div>
  );
}

interface Placed {
  path: string;
  words: string;
  at: Box;
}

/** Limits with their words where they lie on no curve, on no other limit and on no other words, if there is such a place. */
function limitsOf(
  drawn: CurvesData,
  x: (value: number) => number,
  y: (value: number) => number,
  width: number,
): Placed[] {
  const bottom = TOP + HEIGHT;
  const ends = drawn.limits.map((limit) => {
    const { until = null } = limit;
    return limit.on === "y"
      ? { from: [LEFT, y(limit.value)], to: [until === null ? width : x(until), y(limit.value)] }
      : { from: [x(limit.value), bottom], to: [x(limit.value), until === null ? TOP : y(until)] };
  }) as { from: [number, number]; to: [number, number] }[];
  const lines: Line[] = [
    ...drawn.curves.map((curve) => lineOf(curve, x, y)),
    ...ends.map(({ from, to }): Line => [from, to]),
  ];
  const taken: Box[] = [];
  return drawn.limits.map((limit, i) => {
    const text = limitWords(drawn, limit);
    const wide = wideOf(text);
    const { from, to } = ends[i]!;
    const box = (left: number, top: number): Box => ({ x: left, y: top, width: wide, height: WORDS - 1 });
    const places =
      limit.on === "y"
        ? [from[1] - WORDS - 1, from[1] + 2].flatMap((top) => [
            ...(to[0] < width * SHORT ? [box(to[0] + 6, from[1] - WORDS / 2)] : [box(to[0] - wide, top)]),
            box((LEFT + to[0] - wide) / 2, top),
            box(LEFT + 6, top),
          ])
        : [to[1] + 1, bottom - WORDS - 2, (to[1] + bottom) / 2].flatMap((top) => [
            box(from[0] + 5, top),
            box(from[0] - wide - 5, top),
          ]);
    const inside = places.filter((it) => it.x >= LEFT && it.x + wide <= width && it.y >= TOP - WORDS);
    const all = inside.length > 0 ? inside : places;
    const at =
      all[
        freest(
          all,
          lines.filter((_, n) => n !== drawn.curves.length + i),
          taken,
        )
      ]!;
    taken.push(at);
    return { path: `M${from[0]} ${from[1]}L${to[0]} ${to[1]}`, words: text, at };
  });
}

/** A curve as it is drawn: a step has a corner. */
function lineOf(curve: Curve, x: (value: number) => number, y: (value: number) => number): Line {
  const points = curve.points.map(([at, value]): [number, number] => [x(at), y(value)]);
  if (curve.form !== "steps") return points;
  return points.flatMap(
    ([at, height], i) =>
      (i === 0
        ? [[at, height]]
        : [
            [at, points[i - 1]![1]],
            [at, height],
          ]) as Line,
  );
}

function ticks(axis: Axis, marks: number[], place: (value: number) => number): Tick[] {
  return marks.map((mark) => ({ at: place(mark), text: words(axis, mark) }));
}

function Drawn(props: {
  drawn: CurvesData;
  place: number;
  x: (value: number) => number;
  y: (value: number) => number;
}) {
  const { drawn, place, x, y } = props;
  const curve = drawn.curves[place]!;
  const look = lookAt(place);
  if (curve.form === "points")
    return (
      <>
        {curve.points.map(([at, value]) => (
          <Sign
            key={`${at} ${value}`}
            {...signOf(drawn, place)}
            x={x(at)}
            y={y(value)}
            title={`${nameOf(curve)}: ${words(drawn.y, value)} at ${words(drawn.x, at)}`}
          />
        ))}
      </>
    );
  const line = (
    <path d={pathOf(curve, x, y)} fill="none" stroke={look.ink} stroke-width="2" stroke-dasharray={look.dash}>
      <title>{curve.label}</title>
    </path>
  );
  const { below } = curve;
  if (below == null) return line;
  // The area up to that value: lines that are above it lie on it.
  const area = pathOf(curve, x, (value) => y(Math.min(value, below)));
  return (
    <>
      <path fill="var(--ink)" d={`${area}V${y(below)}H${x(curve.points[0]![0])}Z`} fill-opacity="0.12" />
      {line}
    </>
  );
}

function Legend({ drawn }: { drawn: CurvesData }) {
  return (
    <ul class="keys">
      {drawn.curves.map((curve, i) => (
        <LegendEntry key={curve.label} text={nameOf(curve)}>
          {curve.form === "points" ? (
            <Sign {...signOf(drawn, i)} x={12} y={6} />
          ) : (
            <path d="M0 6h24" stroke={lookAt(i).ink} stroke-width="2" stroke-dasharray={lookAt(i).dash} />
          )}
        </LegendEntry>
      ))}
    </ul>
  );
}

function pathOf(curve: Curve, x: (value: number) => number, y: (value: number) => number): string {
  return curve.points
    .map(([at, value], i) => {
      const [to, height] = [x(at).toFixed(1), y(value).toFixed(1)];
      if (i === 0) return `M${to} ${height}`;
      return curve.form === "steps" ? `H${to}V${height}` : `L${to} ${height}`;
    })
    .join("");
}

/** Hue means level and nothing else (tokens.ts): curves differ by dash. */
function lookAt(place: number): { ink: string; dash: string } {
  return {
    ink: place === 0 ? "var(--ink)" : "var(--soft)",
    dash: CURVE_DASHES[place % CURVE_DASHES.length]!,
  };
}

/** The sign of a curve of points: its shape says where it comes from, and which of those it is. */
function signOf({ curves }: CurvesData, place: number): { shape: Shape; nth: number; ink: string } {
  const { mark } = curves[place]!;
  const nth = curves.slice(0, place).filter((curve) => curve.form === "points" && curve.mark === mark).length;
  return { shape: mark ?? "dot", nth, ink: lookAt(place).ink };
}

function nameOf(curve: Curve): string {
  return curve.mark ? `${curve.label} (${curve.mark})` : curve.label;
}

function limitWords(drawn: CurvesData, limit: CurvesData["limits"][number]): string {
  return `${limit.label}, ${words(limit.on === "y" ? drawn.y : drawn.x, limit.value)}`;
}

function words(axis: Axis, value: number): string {
  return roundAmount(value, axis.unit);
}
