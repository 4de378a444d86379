/**
 * The timeline as vectors, for papers and slides: the same scene as picture.ts draws, with the names of its lanes.
 *
 * A lane of coverage is one path for each state: a box for each column in which it has rows.
 */
import { meanOf } from "../../data/lanes";
import type { Tile } from "../../data/tile";
import type { Slices } from "../../data/types";
import { coverageOf, rowsFor } from "../../draw/lane";
import { escaped } from "../../draw/markup";
import { fillOf, stackOrder } from "../../draw/tokens";
import { AXIS_HEIGHT, type LanePlace, rowOf } from "./layout";
import { axisOf, type Scene, timeToX } from "./picture";

const NAMES = 170;
/** Rows of a column, finer than a screen's. */
const FINE = 4;

export const text = (x: number, y: number, words: string, more = "") =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="var(--ink)" font-size="11" ${more}>${escaped(words)}</text>`;
export const line = (x0: number, y0: number, x1: number, y1: number, colour: string) =>
  `<path d="M${x0.toFixed(1)} ${y0.toFixed(1)}L${x1.toFixed(1)} ${y1.toFixed(1)}" stroke="var(--${colour})"/>`;

/** Boxes of each state, as one path each. */
export function coverPaths(
  tiles: Tile[],
  lane: number,
  scene: Pick<Scene, "timeline" | "window">,
  place: { top: number; height: number },
  width: number,
): { name: string; path: string }[] {
  const names = scene.timeline.states.map((state) => state.name);
  const order = stackOrder(names);
  const coverage = coverageOf(tiles, lane, scene.window.t0, scene.window.t1, width);
  const rows = new Uint16Array(names.length);
  const paths = names.map(() => "");
  for (let x = 0; x < width; x++) {
    rowsFor(coverage.share, x * names.length, order, place.height * FINE, rows);
    let y = (place.top + place.height) * FINE;
    for (const s of [...order].reverse()) {
      const high = rows[s]!;
      if (high === 0) continue;
      y -= high;
      paths[s] += `M${x} ${y / FINE}h1v${high / FINE}h-1z`;
    }
  }
  return order.map((s) => ({ name: names[s]!, path: paths[s]! })).filter(({ path }) => path !== "");
}

function stairs(scene: Scene, lane: LanePlace, { slices }: Slices, width: number): string {
  const row = lane.height / lane.steps!.length;
  return slices
    .map((slice) => {
      const name = scene.timeline.states[slice.state]?.name ?? "unknown";
      const step = rowOf(lane.steps!, name);
      const left = Math.max(0, timeToX(slice.from_ns, scene.window, width));
      const right = Math.min(width, timeToX(slice.to_ns, scene.window, width));
      if (right <= left) return "";
      const y = lane.top + step * row;
      const box = `<rect x="${left.toFixed(2)}" y="${(y + 1).toFixed(1)}" width="${Math.max(0.5, right - left).toFixed(2)}" height="${(row - 1).toFixed(1)}" fill="${fillOf(name)}"/>`;
      const wide = right - left > 8 + slice.detail.length * 6.5;
      return slice.detail && wide
        ? box +
            text(
              (left + right) / 2,
              y + row / 2 + 4,
              slice.detail,
              'text-anchor="middle" paint-order="stroke" stroke="var(--page)" stroke-width="3"',
            )
        : box;
    })
    .join("");
}

/** The whole figure as the inside of an SVG, `width` for the lanes alone. */
export function vectorScene(
  scene: Scene,
  mark: number | null,
  width: number,
): { inside: string; width: number; height: number } {
  const out: string[] = [];
  const { at, labels } = axisOf(scene.window, width);
  if (labels.base) out.push(text(-NAMES, 12, labels.base));
  for (const tick of at) {
    const x = timeToX(tick, scene.window, width);
    out.push(
      line(x, AXIS_HEIGHT - 7, x, AXIS_HEIGHT, "line"),
      text(x, 12, labels.of(tick), 'text-anchor="middle"'),
    );
  }
  const strip = (tiles: Tile[], lane: number, place: { top: number; height: number }) => {
    for (const { name, path } of coverPaths(tiles, lane, scene, place, width))
      out.push(`<path d="${path}" fill="${fillOf(name)}" shape-rendering="crispEdges"/>`);
  };
  for (const group of scene.layout.groups) {
    out.push(text(-NAMES, group.top + 13, group.title, 'font-weight="600"'));
    if (!group.mean) continue;
    strip(scene.tiles, meanOf(group.lanes), group);
  }
  for (const lane of scene.layout.lanes) {
    const it = scene.timeline.lanes.find((known) => known.id === lane.id);
    out.push(text(-NAMES, lane.top + lane.height / 2 + 4, it?.title ?? ""));
    const slices = scene.stairs.get(lane.id);
    if (!lane.steps || !slices) strip(scene.tiles, lane.id, lane);
    else {
      const row = lane.height / lane.steps.length;
      lane.steps.forEach((name, i) => {
        out.push(line(0, lane.top + (i + 1) * row, width, lane.top + (i + 1) * row, "grid"));
        out.push(text(-8, lane.top + (i + 0.5) * row + 4, name, 'text-anchor="end"'));
      });
      out.push(stairs(scene, lane, slices, width));
    }
  }
  if (mark !== null) {
    const x = timeToX(mark, scene.window, width);
    if (x >= 0 && x <= width) out.push(line(x, AXIS_HEIGHT - 4, x, scene.height, "ink"));
  }
  const inside = `<g transform="translate(${NAMES + 6} 0)">${out.join("")}</g>`;
  return { inside, width: width + NAMES + 46, height: scene.height };
}
