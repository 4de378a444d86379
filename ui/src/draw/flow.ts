/**
 * A hop of packets as a tile with the station that it ends at; tiles beside each other are one drawing, because all have the
 * boundary at one height. The static page has the same tiles (crates/show/src/html/flow.rs).
 */
import type { Hop, Stop } from "../data/types";

/** Of a tile: two of them fit beside each other on a phone. */
export const TILE_WIDTH = 178;
export const TILE_HEIGHT = 206;
/** From one line of tiles to the next. */
export const ROW_HEIGHT = 218;
/** Heights of what is above the boundary, of the boundary, and of what is below it. */
export const ABOVE = 84;
export const BOUNDARY = 126;
export const BELOW = 162;
/** Half the height of a box. */
export const HALF = 17;
/** Where a hop from a named end begins, and where it ends at a box. */
const BEGIN = 28;
export const END = 120;
const ROUND = 8;
/** Where a line goes up behind the first station below, down before the last one, and both for what returns. */
const UP = 51;
const DOWN = 78;
const RETURN_DOWN = 32;
const RETURN_UP = 80;
/** Widths of lines without load, and of the fullest ones. */
const THIN = 2;
const THICK = 12;

export function heightOf(stop: Stop): number {
  return stop.side === "above" ? ABOVE : BELOW;
}

/** How thick the line of a load is; what is more than `most` looks the same. */
export function thickness(load: number, most: number): number {
  return THIN + (THICK - THIN) * Math.min(1, load / (most || Number.POSITIVE_INFINITY));
}

/** From where to where the boxes above and below reach. */
export function placesOf({ from, to }: Hop): { above: [number, number]; below: [number, number] } {
  const wide: [number, number] = [14, 98];
  const narrow: [number, number] = [32, 86];
  if (from.side === to.side)
    return from.side === "above" ? { above: narrow, below: wide } : { above: wide, below: narrow };
  return from.side === "below" ? { above: [58, 104], below: [32, 70] } : { above: [14, 60], below: [59, 97] };
}

export interface Line {
  /** SVG path data, without what the head covers. */
  data: string;
  /** SVG path data of the head. */
  head: string;
  /** Where it crosses the boundary. */
  crossings: number[];
}

export function lineOf(hop: Hop, isFirst: boolean, thick: number): Line {
  const crossings: number[] = [];
  const turn = (at: number, from: number, to: number) => {
    crossings.push(at);
    const way = from > to ? -ROUND : ROUND;
    return `H${at - ROUND}Q${at} ${from} ${at} ${from + way}V${to - way}Q${at} ${to} ${at + ROUND} ${to}`;
  };
  const { from, to } = hop;
  const [y, end] = [heightOf(from), heightOf(to)];
  let data = `M${isFirst ? BEGIN : 0} ${y}`;
  if (from.side !== to.side) data += turn(from.side === "below" ? UP : DOWN, y, end);
  else if (hop.crossings > 0) {
    const other = y === ABOVE ? BELOW : ABOVE;
    data += turn(RETURN_DOWN, y, other) + turn(RETURN_UP, other, y);
  }
  const tip = to.side === "above" ? END : END + 6;
  const size = Math.round(5 + thick * 0.6);
  return {
    data: `${data}H${tip - size}`,
    head: `M${tip} ${end}l-${size}-${size}v${2 * size}z`,
    crossings,
  };
}
