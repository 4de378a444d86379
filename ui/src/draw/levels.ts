/**
 * Where the boxes and arrows of the levels lie: a column for each VM, its levels on each other, the recorded machine below
 * all of them, one bar of all time. The static page draws the same (crates/show/src/html/levels.rs).
 */
import type { LevelsData } from "../data/types";

const COLUMN = 300;
/** Of more than a few, so that four fit a screen. */
const NARROW = 210;
const FEW = 3;
export const GAP = 22;
export const BOX = 34;
/** Height of the arrows below a box. */
export const FALL = 46;
const HEAD = 26;
/** What the way of a level past the ones below takes. */
export const LANE = 76;
export const ARROW = 20;
export const WORDS = 34;
export const ACROSS = 78;
export const VMM = 140;
export const BAR = 26;
export const KEY = 19;
export const KEY_WIDTH = 236;
const THIN = 1.5;
const THICK = 9;

export interface Places {
  width: number;
  height: number;
  /** Of one column. */
  column: number;
  /** Of all columns together. */
  columns: number;
  ground: number;
  bar: number;
  keysALine: number;
}

export function placesOf({ columns, time }: LevelsData): Places {
  const storeys = Math.max(1, ...columns.map((column) => column.storeys.length));
  // What passes a nested level needs the room beside it.
  const column = columns.length > FEW && storeys === 1 ? NARROW : COLUMN;
  const across = Math.max(1, columns.length) * (column + GAP) - GAP;
  const width = Math.max(across + ACROSS + VMM, 2 * KEY_WIDTH);
  const ground = HEAD + storeys * (BOX + FALL);
  const keysALine = Math.max(1, Math.floor(width / KEY_WIDTH));
  const bar = ground + BOX + 34;
  const height = bar + BAR + 10 + Math.ceil(time.length / keysALine) * KEY;
  return { width, height, column, columns: across, ground, bar, keysALine };
}

/** How thick an arrow is: by the logarithm of its rate, over four decades. */
export function thickness(perSecond: number, most: number): number {
  if (perSecond <= 0 || most <= 0) return THIN;
  return THIN + (THICK - THIN) * Math.min(1, Math.max(0, 1 + Math.log10(perSecond / most) / 4));
}

/** A straight arrow as its shaft and its head. */
export function arrow(x0: number, y0: number, x1: number, y1: number, thick: number) {
  const [length, half] = [5 + thick, 3 + thick * 0.7];
  return x0 === x1
    ? { shaft: `M${x0} ${y0}V${y1 - length}`, head: `M${x1} ${y1}L${x1 - half} ${y1 - length}H${x1 + half}z` }
    : {
        shaft: `M${x0} ${y0}H${x1 - length}`,
        head: `M${x1} ${y1}L${x1 - length} ${y1 - half}V${y1 + half}z`,
      };
}
