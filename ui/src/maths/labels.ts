/** Where words of a picture stand so that they do not lie on what it draws. */

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Line = [number, number][];

/** The place on which the fewest lines and other words lie, the first of those that are alike. */
export function freest(places: Box[], lines: Line[], taken: Box[]): number {
  const costs = places.map(
    (place) =>
      lines.filter((line) => crosses(line, place)).length + 4 * taken.filter((it) => meets(it, place)).length,
  );
  return costs.indexOf(Math.min(...costs));
}

function meets(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

function crosses(line: Line, box: Box): boolean {
  if (line.length === 1) return touches(line[0]!, line[0]!, box);
  return line.some((to, i) => i > 0 && touches(line[i - 1]!, to, box));
}

/** Whether a straight line has a part inside a box: what is left of it between the box's sides (Liang and Barsky). */
function touches([x0, y0]: [number, number], [x1, y1]: [number, number], box: Box): boolean {
  let [from, to] = [0, 1];
  for (const [start, step, low, high] of [
    [x0, x1 - x0, box.x, box.x + box.width],
    [y0, y1 - y0, box.y, box.y + box.height],
  ] as const) {
    if (step === 0) {
      if (start < low || start > high) return false;
      continue;
    }
    const [a, b] = [(low - start) / step, (high - start) / step];
    from = Math.max(from, Math.min(a, b));
    to = Math.min(to, Math.max(a, b));
  }
  return from <= to;
}
