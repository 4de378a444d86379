/**
 * Machines under placements: boxes in boxes (node, core, CPU) with what runs there, placements side by side where there is
 * room. What fights for a CPU has a strong frame; arrows lead from threads to their memory on another node.
 *
 * ```text
 * now                          proposal 1
 * [ node 0                ]  <.  [ node 0 ...
 *   [ core: CPU 0 | CPU 1 ]   |
 * [ node 1                ] --'
 * ```
 */
import type { CpuBox, Panel } from "../data/types";
import { escaped } from "./markup";
import { hueOf } from "./tokens";

const LETTER = 6.6;
const CHIP = 12;
const LINE = 24;
const GAP = 8;
const PAD = 10;
/** Room for arrows beside the nodes, each in a lane of its own. */
const LANE = 16;

export interface Machines {
  inside: string;
  width: number;
  height: number;
}

const wide = (text: string) => Math.ceil(text.length * LETTER);

function text(x: number, y: number, words: string, more = ""): string {
  return `<text x="${x}" y="${y}" fill="var(--ink)" font-size="12" ${more}>${escaped(words)}</text>`;
}

function widthOf(cpu: CpuBox): number {
  const chips = cpu.chips.reduce((sum, chip) => sum + CHIP + wide(chip) + GAP, 0);
  return 14 + wide(String(cpu.cpu)) + GAP + chips + (cpu.contended ? 10 : 0);
}

/** A CPU: its number, and each of its chips behind a patch of its colour. */
function cpuAt(cpu: CpuBox, x: number, y: number, width: number): string {
  const frame = cpu.contended ? 'stroke="var(--ink)" stroke-width="2"' : 'stroke="var(--line)"';
  const out = [
    `<rect x="${x}" y="${y}" width="${width}" height="${LINE - 4}" rx="3" fill="var(--page)" ${frame}/>`,
    text(x + 6, y + 14, String(cpu.cpu), 'font-weight="600"'),
  ];
  let at = x + 6 + wide(String(cpu.cpu)) + GAP;
  cpu.chips.forEach((chip, i) => {
    out.push(
      `<rect x="${at}" y="${y + 5}" width="8" height="10" fill="${hueOf(cpu.hues?.[i] ?? "")}"/>`,
      text(at + CHIP, y + 14, chip),
    );
    at += CHIP + wide(chip) + GAP;
  });
  if (cpu.contended) out.push(text(x + width - 10, y + 14, "!", 'font-weight="600"'));
  return out.join("");
}

/** One placement from `left` on. */
function panel({ title, nodes, links, arrows }: Panel, left: number, room: number): Machines {
  const out = [text(left, 14, title, 'font-weight="600"')];
  const lanes = (arrows ?? []).filter(({ from, to }) => from !== null && to !== null && from !== to).length;
  const within = room - lanes * LANE;
  let y = 24;
  let right = left + wide(title);
  const boxes: { top: number; bottom: number }[] = [];
  const frames: number[] = [];
  for (const node of nodes) {
    const top = y;
    frames.push(out.length);
    out.push("", text(left + PAD, y + 16, node.title));
    y += 24;
    let x = left + PAD;
    let tallest = 0;
    for (const core of node.cores) {
      const width = Math.max(...core.map(widthOf)) + 2 * 6;
      const height = core.length * LINE + 6;
      if (x > left + PAD && x + width > left + within - PAD) {
        x = left + PAD;
        y += tallest + GAP;
        tallest = 0;
      }
      out.push(
        `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="4" fill="none" stroke="var(--line)"/>`,
        ...core.map((cpu, i) => cpuAt(cpu, x + 6, y + 5 + i * LINE, width - 12)),
      );
      x += width + GAP;
      right = Math.max(right, x);
      tallest = Math.max(tallest, height);
    }
    y += tallest + PAD;
    boxes.push({ top, bottom: y });
    y += GAP;
  }
  boxes.forEach(({ top, bottom }, i) => {
    out[frames[i]!] =
      `<rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" rx="5" fill="var(--panel)" stroke="var(--soft)"/>`;
  });
  let lane = right;
  for (const { from, to } of arrows ?? []) {
    const [begin, end] = [boxes[from ?? -1], boxes[to ?? -1]];
    if (!begin || !end || begin === end) continue;
    lane += LANE;
    const [y0, y1] = [(begin.top + begin.bottom) / 2, (end.top + end.bottom) / 2];
    out.push(
      `<path d="M${right} ${y0}H${lane}V${y1}H${right + 8}" fill="none" stroke="var(--ink)" stroke-width="2"/>`,
      `<path d="M${right} ${y1}l9 -5v10z" fill="var(--ink)"/>`,
    );
  }
  for (const link of links) {
    out.push(text(left, y + 14, link));
    lane = Math.max(lane, left + wide(link));
    y += 20;
  }
  return { inside: out.join(""), width: Math.max(right, lane) - left, height: y };
}

/** Placements beside each other where `room` has it, else below each other. */
export function machines(panels: Panel[], room: number): Machines {
  const half = (room - 4 * GAP) / 2;
  const beside = panels.length > 1 && half >= 480;
  const parts: string[] = [];
  let [width, height, left] = [0, 0, 0];
  for (const one of panels) {
    const drawn = panel(one, beside ? left : 0, beside ? half : room);
    if (beside) {
      parts.push(drawn.inside);
      left += drawn.width + 4 * GAP;
      width = left - 4 * GAP;
      height = Math.max(height, drawn.height);
    } else {
      parts.push(`<g transform="translate(0 ${height})">${drawn.inside}</g>`);
      width = Math.max(width, drawn.width);
      height += drawn.height + 2 * GAP;
    }
  }
  return { inside: parts.join(""), width: width + 2, height: height + 2 };
}
