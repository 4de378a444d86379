/** Both timelines as vectors: what the page draws on two canvases, with the names of recordings and lanes. */
import { fillOf } from "../../draw/tokens";
import type { Window } from "../../maths/window";
import { coverPaths, line, text } from "../timeline/vector";
import { GAP, HEIGHT, marksOf, type Strips } from "./strips";

const NAMES = 130;
const HEADING = 24;
/** Letters of a name that fit beside the lanes. */
const LETTERS = 19;
/** Between one side and the other. */
const SPACE = 14;

function short(name: string): string {
  return name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name;
}

export interface Named {
  /** Before or After. */
  word: string;
  name: string;
  strips: Strips;
}

/** The inside of an SVG, `width` for the lanes alone. */
export function vectorOfBoth(
  sides: Named[],
  window: Window,
  width: number,
): { inside: string; width: number; height: number } {
  const out: string[] = [];
  let y = 0;
  for (const { word, name, strips } of sides) {
    const { rows, tile, timeline } = strips;
    out.push(text(0, y + 14, `${word}: ${name}`, 'font-weight="600"'));
    y += HEADING;
    rows.forEach(({ lane, title, group }, i) => {
      const top = y + i * (HEIGHT + GAP);
      out.push(
        text(0, top + HEIGHT / 2 + (group ? -2 : 4), short(title)),
        ...(group ? [text(0, top + HEIGHT / 2 + 12, short(group))] : []),
        `<rect x="${NAMES}" y="${top}" width="${width}" height="${HEIGHT}" fill="var(--panel)"/>`,
      );
      if (!tile) return;
      const scene = { timeline, window: { t0: tile.t0, t1: tile.t1 } };
      const paths = coverPaths([tile], lane, scene, { top, height: HEIGHT }, width).map(
        ({ name, path }) => `<path d="${path}" fill="${fillOf(name)}" shape-rendering="crispEdges"/>`,
      );
      out.push(`<g transform="translate(${NAMES} 0)">${paths.join("")}</g>`);
    });
    y += strips.height;
    if (strips.ends) {
      out.push(text(NAMES, y + 15, strips.ends));
      y += 18;
    }
    y += SPACE;
  }
  out.push(line(NAMES, y, NAMES + width, y, "line"));
  for (const { at, words, isLast } of marksOf(window, width)) {
    const x = NAMES + at * width;
    out.push(
      line(x, y, x, y + 14, "line"),
      text(x + (isLast ? -4 : 4), y + 13, words, isLast ? 'text-anchor="end"' : ""),
    );
  }
  return { inside: out.join(""), width: NAMES + width, height: y + 22 };
}
