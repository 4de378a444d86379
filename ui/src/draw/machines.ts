/**
 * Machines under placements as vectors, for what one takes along; on the page they are boxes that wrap.
 *
 * ```text
 * before                     after
 * [ node 0                ]  [ node 0 ...
 *   [ core: CPU 0 | CPU 1 ]
 * ```
 * A core is a line of CPUs; CPUs that several things fight for have a strong frame.
 */
import type { CpuBox, Panel } from "../data/types";
import { standalone } from "./export";
import { escaped } from "./markup";

const LETTER = 6.6;
const LINE = 22;
const GAP = 6;
const LEFT = 12;

const labelOf = (cpu: CpuBox) => [cpu.cpu, cpu.chips.join(", "), cpu.contended ? "!" : ""].join(" ").trim();
const widthOf = (text: string) => Math.ceil(text.length * LETTER) + 14;

function text(x: number, y: number, words: string, more = ""): string {
  return `<text x="${x}" y="${y}" fill="var(--ink)" font-size="12" ${more}>${escaped(words)}</text>`;
}

/** One panel from `left` on, and the room that it takes. */
function panel(
  { title, nodes, links }: Panel,
  left: number,
): { inside: string; width: number; height: number } {
  const out = [text(left, 20, title, 'font-weight="600"')];
  let y = 32;
  let right = left + widthOf(title);
  for (const node of nodes) {
    out.push(text(left, y + 15, node.title));
    y += LINE;
    for (const core of node.cores) {
      let x = left + LEFT;
      for (const cpu of core) {
        const label = labelOf(cpu);
        const wide = widthOf(label);
        const frame = cpu.contended
          ? 'stroke="var(--ink)" stroke-width="2"'
          : 'stroke="var(--line)" stroke-width="1"';
        out.push(
          `<rect x="${x}" y="${y}" width="${wide}" height="${LINE - 2}" rx="3" fill="var(--panel)" ${frame}/>`,
          text(x + 7, y + 14, label),
        );
        x += wide + GAP;
      }
      right = Math.max(right, x);
      y += LINE + 2;
    }
    y += GAP;
  }
  for (const link of links) {
    out.push(text(left, y + 15, link));
    right = Math.max(right, left + widthOf(link));
    y += LINE;
  }
  return { inside: out.join(""), width: right - left, height: y };
}

/** All panels side by side. */
export function machines(panels: Panel[]): string {
  let left = LEFT;
  let height = 0;
  const parts = panels.map((one) => {
    const drawn = panel(one, left);
    left += drawn.width + 3 * LEFT;
    height = Math.max(height, drawn.height);
    return drawn.inside;
  });
  return standalone(parts.join(""), left, height + LEFT);
}
