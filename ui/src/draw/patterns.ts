/** The second cue beside hue: an 8 x 8 pattern for each state, one table for canvas and SVG. */
import { colourOf, lookOf, type Theme } from "./tokens";

export type PatternName =
  | "solid"
  | "lines"
  | "dots"
  | "sparse"
  | "diagonal"
  | "back"
  | "cross"
  | "bars"
  | "plus"
  | "grid"
  | "bricks"
  | "rings"
  | "hatch";

export const PATTERN_SIZE = 8;

/** Strokes of each pattern as SVG path data, and how strong they are. */
export const PATTERNS: Record<PatternName, { path: string; width: number }> = {
  solid: { path: "", width: 0 },
  lines: { path: "M0 1.5h8M0 5.5h8", width: 1 },
  dots: { path: "M1 2h2M5 6h2", width: 2 },
  sparse: { path: "M3 4h1.5", width: 1.5 },
  diagonal: { path: "M-2 6L6 -2M-2 10L10 -2M2 10L10 2", width: 1.6 },
  back: { path: "M-2 2L6 10M-2 -2L10 10M2 -2L10 6", width: 1.2 },
  cross: { path: "M0 0L8 8M8 0L0 8", width: 0.9 },
  bars: { path: "M1.5 0v8M5.5 0v8", width: 1 },
  plus: { path: "M4 2v4M2 4h4", width: 1.2 },
  grid: { path: "M0 4h8M4 0v8", width: 0.9 },
  bricks: { path: "M0 0.5h8M0 4.5h8M2 0.5v4M6 4.5v4", width: 1 },
  rings: { path: "M6 4A2 2 0 1 1 2 4A2 2 0 1 1 6 4", width: 0.9 },
  hatch: { path: "M-2 6L6 -2M-2 10L10 -2M2 10L10 2", width: 0.8 },
};

/** Pattern strokes are white on dark hues and dark on light ones. */
export function strokeOf(state: string, theme: Theme): string {
  const pattern = lookOf(state).pattern;
  if (pattern === "hatch") return theme === "light" ? "#a5a5a0" : "#5c6269";
  const hex = colourOf(state, theme);
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  const luma = 0.299 * r! + 0.587 * g! + 0.114 * b!;
  return luma > 150 ? "rgba(0,0,0,0.5)" : "rgba(255,255,255,0.62)";
}

function paint(
  context: CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D,
  state: string,
  theme: Theme,
) {
  const { path, width } = PATTERNS[lookOf(state).pattern];
  context.fillStyle = colourOf(state, theme);
  context.fillRect(0, 0, PATTERN_SIZE, PATTERN_SIZE);
  if (!path) return;
  context.strokeStyle = strokeOf(state, theme);
  context.lineWidth = width;
  context.stroke(new Path2D(path));
}

/** A pattern's pixels, `PATTERN_SIZE * scale` square, ready for an ImageData of the same byte order. */
export function texture(state: string, theme: Theme, scale: number): Uint32Array {
  const size = PATTERN_SIZE * scale;
  const canvas = new OffscreenCanvas(size, size);
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.scale(scale, scale);
  paint(context, state, theme);
  return new Uint32Array(context.getImageData(0, 0, size, size).data.buffer);
}

/** Patterns by state, theme and scale: a drawing has thousands of slices in a dozen states. */
const fills = new Map<string, CanvasPattern>();

/** A pattern as a canvas fill; each is made once. */
export function canvasFill(
  context: CanvasRenderingContext2D,
  state: string,
  theme: Theme,
  scale: number,
): CanvasPattern {
  const key = `${state}/${theme}/${scale}`;
  const known = fills.get(key);
  if (known) return known;
  const size = PATTERN_SIZE * scale;
  const canvas = new OffscreenCanvas(size, size);
  const small = canvas.getContext("2d")!;
  small.scale(scale, scale);
  paint(small, state, theme);
  const pattern = context.createPattern(canvas, "repeat")!;
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  fills.set(key, pattern);
  return pattern;
}
