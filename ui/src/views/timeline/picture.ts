/**
 * The level timeline as pixels: an axis, and below it a lane per vCPU. No framework, no fetching.
 *
 * ```text
 *            0.0 s      0.5 s      1.0 s          zoomed out: stacked coverage
 * vCPU 0   |▆▆▃▃▆▆▆▆▆▃▃▃▃▁▁▁▁▁▆▆▆▆▆▆▆▆|          zoomed in:  a staircase, one row per level
 * ```
 */
import { meanOf } from "../../data/lanes";
import type { Tile } from "../../data/tile";
import type { Slices, Timeline } from "../../data/types";
import { coverageOf, paintCoverage, type Textures } from "../../draw/lane";
import { canvasFill, PATTERN_SIZE, texture } from "../../draw/patterns";
import { stackOrder, type Theme, token } from "../../draw/tokens";
import { instant, type Marks, marksOf } from "../../maths/format";
import type { Area } from "../../maths/picked";
import { ticks, type Window } from "../../maths/window";
import { AXIS_HEIGHT, type Layout, rowOf } from "./layout";

const TEXT_FROM_PIXELS = 40;

export interface Scene {
  timeline: Timeline;
  window: Window;
  tiles: Tile[];
  stairs: Map<number, Slices>;
  /** What is on screen, in heights of the whole. */
  layout: Layout;
  theme: Theme;
  /** Which height of the whole lies below the axis's upper edge, and how much is seen of it. */
  top: number;
  height: number;
  /** What is drawn over the lanes and moves with them. */
  arrows: Arrows | null;
}

export type Arrows = (context: CanvasRenderingContext2D, scene: Scene, width: number) => void;

/** What lies above the lanes and follows the hand: drawn by itself, so that nothing below is drawn again. */
export interface Above {
  cursor: number | null;
  brush: Area | null;
  area: Area | null;
  /** The slice whose details are shown. */
  picked: { lane: number; window: Window } | null;
  /** An instant that something led to. */
  mark: number | null;
}

const textures = new Map<string, Textures>();

function texturesFor(names: string[], theme: Theme, scale: number): Textures {
  const key = `${theme}${scale}${names.join()}`;
  let found = textures.get(key);
  if (!found) {
    found = { size: PATTERN_SIZE * scale, of: names.map((name) => texture(name, theme, scale)) };
    textures.set(key, found);
  }
  return found;
}

/** Draws a scene; `width` in CSS pixels. */
export function drawScene(canvas: HTMLCanvasElement, width: number, scene: Scene): void {
  const scale = Math.max(1, Math.min(3, Math.round(devicePixelRatio)));
  const { height } = scene;
  if (canvas.width !== width * scale || canvas.height !== height * scale) {
    canvas.width = width * scale;
    canvas.height = height * scale;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = token("page", scene.theme);
  context.fillRect(0, 0, canvas.width, canvas.height);
  coverLanes(context, scene, width * scale, scale);
  context.setTransform(scale, 0, 0, scale, 0, -scene.top * scale);
  for (const lane of scene.layout.lanes) {
    const slices = scene.stairs.get(lane.id);
    if (slices && lane.steps) drawStairs(context, scene, width, lane, slices, scale);
  }
  scene.arrows?.(context, scene, width);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  drawAxis(context, scene, width);
}

/** Draws what lies above a scene. */
export function drawAbove(canvas: HTMLCanvasElement, width: number, scene: Scene, above: Above): void {
  const scale = Math.max(1, Math.min(3, Math.round(devicePixelRatio)));
  const context = canvas.getContext("2d")!;
  context.setTransform(1, 0, 0, 1, 0, 0);
  if (canvas.width !== width * scale || canvas.height !== scene.height * scale) {
    // It begins empty, and on paper erasing would erase the lanes below as well.
    canvas.width = width * scale;
    canvas.height = scene.height * scale;
  } else context.clearRect(0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  context.strokeStyle = token("ink", scene.theme);
  context.fillStyle = token("ink", scene.theme);
  const at = (ns: number) => timeToX(ns, scene.window, width);
  const box = ({ t0, t1 }: Window, top: number, bottom: number, dim: number) => {
    const upper = Math.max(AXIS_HEIGHT, top - scene.top);
    const lower = Math.min(scene.height, bottom - scene.top);
    const [left, right] = [Math.max(-2, at(t0)), Math.min(width + 2, at(t1))];
    if (lower <= upper || right < 0 || left > width) return;
    context.globalAlpha = dim;
    context.fillRect(left, upper, Math.max(1, right - left), lower - upper);
    context.globalAlpha = 1;
    context.strokeRect(left + 0.5, upper + 0.5, Math.max(1, right - left - 1), lower - upper - 1);
  };
  for (const area of [above.area, above.brush]) {
    if (!area) continue;
    const rows = scene.layout.lanes.filter((lane) => area.lanes.includes(lane.id));
    for (const row of rows) box(area.window, row.top - 2, row.top + row.height + 2, 0.14);
  }
  const { picked } = above;
  const row = picked && scene.layout.lanes.find((lane) => lane.id === picked.lane);
  if (row) {
    const wide = widened(picked.window, scene.window, width);
    context.lineWidth = 2;
    box(wide, row.top - 2, row.top + row.height + 2, 0.06);
    context.lineWidth = 1;
    // What is too narrow to be found by its box has an arrow above it.
    const upper = row.top - 2 - scene.top;
    if (wide !== picked.window && upper >= AXIS_HEIGHT - 2)
      drawArrow(context, at((wide.t0 + wide.t1) / 2), upper);
  }
  if (above.mark !== null) drawMark(context, at(above.mark), scene.height);
  if (above.cursor !== null) {
    const x = Math.round(at(above.cursor)) + 0.5;
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT - 4);
    context.lineTo(x, scene.height);
    context.stroke();
  }
}

/** As many pixels one finds in a picture of the whole recording. */
const FOUND_PIXELS = 7;

/** A window that is at least as wide as one finds, around the same middle. */
export function widened(window: Window, shown: Window, width: number): Window {
  const least = (FOUND_PIXELS * (shown.t1 - shown.t0)) / width;
  if (window.t1 - window.t0 >= least) return window;
  const middle = (window.t0 + window.t1) / 2;
  return { t0: middle - least / 2, t1: middle + least / 2 };
}

function drawArrow(context: CanvasRenderingContext2D, at: number, tip: number): void {
  context.beginPath();
  context.moveTo(at, tip);
  context.lineTo(at - 6, tip - 8);
  context.lineTo(at + 6, tip - 8);
  context.fill();
}

function coverLanes(context: CanvasRenderingContext2D, scene: Scene, pixels: number, scale: number): void {
  const names = scene.timeline.states.map((state) => state.name);
  const order = stackOrder(names);
  const looks = texturesFor(names, scene.theme, scale);
  const { t0, t1 } = scene.window;
  const { tiles } = scene;
  const strip = (lane: number, top: number, high: number) => {
    const height = high * scale;
    const image = context.createImageData(pixels, height);
    const rows = new Uint32Array(image.data.buffer);
    rows.fill(backgroundOf(scene.theme));
    if (tiles.length > 0)
      paintCoverage(rows, pixels, 0, height, coverageOf(tiles, lane, t0, t1, pixels), order, looks);
    context.putImageData(image, 0, (top - scene.top) * scale);
  };
  for (const lane of scene.layout.lanes) {
    if (!lane.steps) strip(lane.id, lane.top, lane.height);
  }
  for (const group of scene.layout.groups) {
    if (group.mean) strip(meanOf(group.lanes), group.top, group.height);
  }
}

export interface Share {
  state: number;
  share: number;
}

/** What a lane did in a tile's pixel. */
export interface PixelAt {
  t0: number;
  t1: number;
  /** Most first; a state that is there for less than a tile can say has 0. */
  shares: Share[];
}

/** The pixel of the finest tile that has the lane at an instant: what a tile says, exactly. */
export function pixelAt(tiles: Tile[], lane: number, ns: number): PixelAt | null {
  for (const tile of [...tiles].reverse()) {
    const source = ns >= tile.t0 && ns < tile.t1 && tile.lanes.find((has) => has.lane === lane);
    if (!source) continue;
    const long = (tile.t1 - tile.t0) / tile.width;
    const p = Math.min(tile.width - 1, Math.floor((ns - tile.t0) / long));
    const shares = Array.from({ length: tile.states }, (_, state) => ({
      state,
      share: source.cover[p * tile.states + state]! / 255,
    }));
    const there = shares.filter(
      ({ state, share }) => share > 0 || ((source.present[p]! >>> state) & 1) === 1,
    );
    const t0 = tile.t0 + p * long;
    return { t0, t1: t0 + long, shares: there.sort((a, b) => b.share - a.share) };
  }
  return null;
}

function backgroundOf(theme: Theme): number {
  const hex = token("panel", theme);
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  return ((255 << 24) | (b! << 16) | (g! << 8) | r!) >>> 0;
}

export function timeToX(ns: number, window: Window, width: number): number {
  return ((ns - window.t0) / (window.t1 - window.t0)) * width;
}

/** Marks whose triangle is under or above the pointer, each with its time; the first of very many. */
export function marksNear(
  markers: Scene["timeline"]["markers"],
  ns: number,
  window: Window,
  width: number,
): string[] {
  const reach = (MARK_PIXELS * (window.t1 - window.t0)) / width;
  const near = markers.filter((marker) => Math.abs(marker.at_ns - ns) <= reach);
  return near.slice(0, MOST_MARKS).map((marker) => `${marker.label}, ${instant(marker.at_ns)}`);
}

/** Half the width of a mark, and one more pixel to hit it. */
const MARK_PIXELS = 5;
const MOST_MARKS = 8;

/** Marks of the axis and their labels. */
export function axisOf(window: Window, width: number): { at: number[]; labels: Marks } {
  const { step, at } = ticks(window, Math.max(2, Math.floor(width / 110)));
  return { at, labels: marksOf(window.t0, window.t1, step) };
}

function drawAxis(context: CanvasRenderingContext2D, scene: Scene, width: number): void {
  const { at, labels } = axisOf(scene.window, width);
  context.fillStyle = token("page", scene.theme);
  context.fillRect(0, 0, width, AXIS_HEIGHT);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  let free = 0;
  for (const tick of at) {
    const x = Math.round(timeToX(tick, scene.window, width)) + 0.5;
    context.strokeStyle = token("line", scene.theme);
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT - 7);
    context.lineTo(x, AXIS_HEIGHT);
    context.stroke();
    context.fillStyle = token("soft", scene.theme);
    const text = labels.of(tick);
    const wide = context.measureText(text).width;
    const left = Math.min(width - wide - 2, Math.max(2, x - wide / 2));
    if (left < free) continue;
    context.fillText(text, left, 10);
    free = left + wide + 8;
  }
  context.fillStyle = token("ink", scene.theme);
  for (const marker of scene.timeline.markers) {
    const x = timeToX(marker.at_ns, scene.window, width);
    if (x < -5 || x > width + 5) continue;
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT);
    context.lineTo(x - 4, AXIS_HEIGHT - 6);
    context.lineTo(x + 4, AXIS_HEIGHT - 6);
    context.fill();
  }
}

function drawStairs(
  context: CanvasRenderingContext2D,
  scene: Scene,
  width: number,
  lane: Layout["lanes"][number],
  { slices }: Slices,
  scale: number,
): void {
  const steps = lane.steps!;
  const row = lane.height / steps.length;
  context.fillStyle = token("panel", scene.theme);
  context.fillRect(0, lane.top, width, lane.height);
  context.strokeStyle = token("grid", scene.theme);
  for (let i = 1; i < steps.length; i++) {
    context.beginPath();
    context.moveTo(0, lane.top + i * row + 0.5);
    context.lineTo(width, lane.top + i * row + 0.5);
    context.stroke();
  }
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.strokeStyle = token("ink", scene.theme);
  context.lineWidth = 1;
  let lastY: number | null = null;
  const { t0, t1 } = scene.window;
  for (const slice of slices) {
    if (slice.to_ns < t0 || slice.from_ns > t1) continue;
    const name = scene.timeline.states[slice.state]?.name ?? "unknown";
    const place = rowOf(steps, name);
    const left = Math.max(-1, timeToX(slice.from_ns, scene.window, width));
    const right = Math.min(width + 1, timeToX(slice.to_ns, scene.window, width));
    if (right < 0 || left > width) continue;
    const y = lane.top + place * row;
    context.fillStyle = canvasFill(context, name, scene.theme, scale);
    context.fillRect(left, y + 1, Math.max(1, right - left), row - 1);
    if (lastY !== null && lastY !== y) {
      context.beginPath();
      context.moveTo(left, Math.min(lastY, y) + row / 2);
      context.lineTo(left, Math.max(lastY, y) + row / 2);
      context.stroke();
    }
    lastY = y;
    if (slice.detail && right - left > TEXT_FROM_PIXELS)
      label(context, scene.theme, slice.detail, left, right, y + row / 2);
  }
}

export function label(
  context: CanvasRenderingContext2D,
  theme: Theme,
  text: string,
  left: number,
  right: number,
  y: number,
) {
  const width = context.measureText(text).width;
  if (width + 8 > right - left) return;
  const x = Math.max(left + 4, Math.min((left + right - width) / 2, right - width - 4));
  context.fillStyle = token("page", theme);
  context.fillRect(x - 3, y - 6, width + 6, 12);
  context.fillStyle = token("ink", theme);
  context.fillText(text, x, y);
}

function drawMark(context: CanvasRenderingContext2D, at: number, bottom: number): void {
  const x = Math.round(at) + 0.5;
  context.lineWidth = 2;
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(x, AXIS_HEIGHT - 4);
  context.lineTo(x, bottom);
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, AXIS_HEIGHT + 1);
  context.lineTo(x - 6, AXIS_HEIGHT - 8);
  context.lineTo(x + 6, AXIS_HEIGHT - 8);
  context.fill();
}
