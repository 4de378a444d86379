/** An axis with the values that it has to hold: a decade or more between round ends, or from 0 to a round number near the largest. */
import type { Axis, CurvesData } from "../data/types";

export interface Scale {
  from: number;
  to: number;
  /** Where a value lies, from 0 to 1. */
  place: (value: number) => number;
  /** Round values along it, from its beginning on. */
  marks: number[];
}

export function scaleOf(axis: Axis, values: number[]): Scale {
  const shown = values.filter((value) => Number.isFinite(value) && value > 0);
  const most = shown.reduce((a, b) => Math.max(a, b), 0);
  return axis.logarithmic ? decades(shown, most) : linear(most);
}

/** More values than this are a curve, and no list of what was measured. */
const FEW = 8;
/** Words of marks that are nearer than this share of the axis touch each other. */
const APART = 0.06;

/** The marks of the axis along the page: where curves have a few whole numbers there, such as sizes of batches, these alone. */
export function marksAlong({ x, curves }: CurvesData, scale: Scale): number[] {
  const all = curves.flatMap((curve) => curve.points.map(([at]) => at));
  const own = [...new Set(all)].sort((a, b) => a - b);
  const isList = x.logarithmic && x.unit === "count" && own.every((at) => Number.isInteger(at) && at > 0);
  const areApart = own.every((at, i) => i === 0 || scale.place(at) - scale.place(own[i - 1]!) >= APART);
  return isList && own.length > 0 && own.length <= FEW && areApart ? own : scale.marks;
}

/** Where a logarithmic axis may begin and end, of one decade. */
function stepsOf(decade: number): number[] {
  return [1, 2, 5].map((times) => Number((times * 10 ** decade).toPrecision(12)));
}

function decades(shown: number[], most: number): Scale {
  if (most === 0) return decades([1, 10], 10);
  const least = shown.reduce((a, b) => Math.min(a, b), most);
  const [low, high] = [Math.floor(Math.log10(least)), Math.floor(Math.log10(most))];
  const from = stepsOf(low).findLast((step) => step <= least * (1 + 1e-12)) ?? least;
  const end = Math.max(most * (1 - 1e-12), from * 9.9);
  const to = [...stepsOf(high), ...stepsOf(high + 1)].find((step) => step >= end) ?? most;
  const place = (value: number) =>
    value > 0 ? clamped(Math.log10(value / from) / Math.log10(to / from)) : 0;
  return { from, to, place, marks: marksOf(from, to) };
}

/** Powers of ten, where fewer than three of them are on the axis twice and five times them too. */
function marksOf(from: number, to: number): number[] {
  const first = Math.ceil(Math.log10(from) - 1e-9);
  const last = Math.floor(Math.log10(to) + 1e-9);
  const count = last - first + 1;
  if (count < 3) {
    const all = Array.from({ length: count + 1 }, (_, i) => stepsOf(first - 1 + i)).flat();
    return all.filter((mark) => mark >= from && mark <= to);
  }
  const step = Math.floor((last - first) / 6) + 1;
  const marks = [];
  for (let power = first; power <= last; power += step) marks.push(10 ** power);
  return marks;
}

/** An axis has at least so many steps, and ends at most so far beyond what it holds. */
const STEPS = 3;
const BEYOND = 1.25;

function linear(most: number): Scale {
  const { step, to } = most > 0 ? stepsTo(most) : { step: 0.2, to: 1 };
  const parts = Math.round(to / step);
  const marks = Array.from({ length: parts + 1 }, (_, part) => (to * part) / parts);
  return { from: 0, to, place: (value) => clamped(value / to), marks };
}

/** The largest step of one, two or five times a power of ten that ends near `most`: 1,518 ends at 1,600 and not at 2,000. */
function stepsTo(most: number): { step: number; to: number } {
  for (let decade = 10 ** Math.ceil(Math.log10(most)); ; decade /= 10)
    for (const times of [5, 2, 1]) {
      const step = times * decade;
      const count = Math.ceil((most / step) * (1 - 1e-12));
      const to = Number((count * step).toPrecision(12));
      if (count >= STEPS && to <= most * BEYOND) return { step, to };
    }
}

function clamped(share: number): number {
  return Math.min(1, Math.max(0, share));
}
