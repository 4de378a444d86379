/**
 * The level timeline as pixels: an axis, and below it a lane per vCPU. No framework, no fetching.
 *
 * ```text
 *            0.0 s      0.5 s      1.0 s          zoomed out: stacked coverage
 * vCPU 0   |▆▆▃▃▆▆▆▆▆▃▃▃▃▁▁▁▁▁▆▆▆▆▆▆▆▆|          zoomed in:  a staircase, one row per level
 * ```
 */
import { meanLane, type Tile } from "../../data/tile";
import type { Slices, Timeline } from "../../data/types";
import { coverageOf, paintCoverage, type Textures } from "../../draw/lane";
import { canvasFill, PATTERN_SIZE, texture } from "../../draw/patterns";
import { stackOrder, type Theme, token } from "../../draw/tokens";
import { instant } from "../../maths/format";
import { ticks, type Window } from "../../maths/window";
import { AXIS_HEIGHT, LANE_GAP, type Layout, rowOf } from "./layout";

const TEXT_FROM_PIXELS = 40;

export interface Scene {
  timeline: Timeline;
  window: Window;
  tiles: Tile[];
  stairs: Map<number, Slices>;
  layout: Layout;
  theme: Theme;
  cursor: number | null;
  brush: Window | null;
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
  const height = scene.layout.height;
  if (canvas.width !== width * scale || canvas.height !== height * scale) {
    canvas.width = width * scale;
    canvas.height = height * scale;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = token("page", scene.theme);
  context.fillRect(0, 0, canvas.width, canvas.height);
  coverLanes(context, scene, width * scale, scale);
  context.scale(scale, scale);
  drawAxis(context, scene, width);
  for (const lane of scene.layout.lanes) {
    const slices = scene.stairs.get(lane.id);
    if (slices && lane.steps) drawStairs(context, scene, width, lane, slices, scale);
  }
  drawMarks(context, scene, width);
}

function coverLanes(context: CanvasRenderingContext2D, scene: Scene, pixels: number, scale: number): void {
  const names = scene.timeline.states.map((state) => state.name);
  const order = stackOrder(names);
  const looks = texturesFor(names, scene.theme, scale);
  const { t0, t1 } = scene.window;
  const strip = (tiles: Tile[], lane: number, top: number, high: number) => {
    const height = high * scale;
    const image = context.createImageData(pixels, height);
    const rows = new Uint32Array(image.data.buffer);
    rows.fill(backgroundOf(scene.theme));
    if (tiles.length > 0)
      paintCoverage(rows, pixels, 0, height, coverageOf(tiles, lane, t0, t1, pixels), order, looks);
    context.putImageData(image, 0, top * scale);
  };
  for (const lane of scene.layout.lanes) {
    if (!lane.steps) strip(scene.tiles, lane.id, lane.top, lane.height);
  }
  for (const group of scene.layout.groups) {
    if (!group.folded) continue;
    strip(
      scene.tiles.map((tile) => meanLane(tile, group.lanes)),
      0,
      group.top,
      group.height,
    );
  }
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

function drawAxis(context: CanvasRenderingContext2D, scene: Scene, width: number): void {
  const { step, at } = ticks(scene.window, Math.max(2, Math.floor(width / 130)));
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const tick of at) {
    const x = Math.round(timeToX(tick, scene.window, width)) + 0.5;
    context.strokeStyle = token("line", scene.theme);
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT - 7);
    context.lineTo(x, AXIS_HEIGHT);
    context.stroke();
    context.fillStyle = token("soft", scene.theme);
    const text = instant(tick, step);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(width - 2 * half - 2, Math.max(2, x - half)), 10);
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
  for (const slice of slices) {
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

function label(
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

function drawMarks(context: CanvasRenderingContext2D, scene: Scene, width: number): void {
  const bottom = scene.layout.height - LANE_GAP;
  context.strokeStyle = token("ink", scene.theme);
  context.fillStyle = token("ink", scene.theme);
  for (const marker of scene.timeline.markers) {
    const x = timeToX(marker.at_ns, scene.window, width);
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT);
    context.lineTo(x - 4, AXIS_HEIGHT - 6);
    context.lineTo(x + 4, AXIS_HEIGHT - 6);
    context.fill();
  }
  if (scene.mark !== null) {
    const x = Math.round(timeToX(scene.mark, scene.window, width)) + 0.5;
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
  if (scene.brush) {
    const left = timeToX(scene.brush.t0, scene.window, width);
    const right = timeToX(scene.brush.t1, scene.window, width);
    context.globalAlpha = 0.14;
    context.fillRect(left, AXIS_HEIGHT, right - left, bottom - AXIS_HEIGHT);
    context.globalAlpha = 1;
    context.strokeRect(left + 0.5, AXIS_HEIGHT + 0.5, right - left, bottom - AXIS_HEIGHT);
  }
  if (scene.cursor !== null) {
    const x = Math.round(timeToX(scene.cursor, scene.window, width)) + 0.5;
    context.beginPath();
    context.moveTo(x, AXIS_HEIGHT - 4);
    context.lineTo(x, bottom);
    context.stroke();
  }
}
