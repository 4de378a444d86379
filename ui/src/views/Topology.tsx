/** A machine under one or more placements, as one drawing. */
import { useRef } from "preact/hooks";
import type { Panel } from "../data/types";
import { machines } from "../draw/machines";
import { counted } from "../maths/format";
import { LegendEntry } from "./Picture";
import { useWidth } from "./useSize";

/** Narrower ones scroll. */
const LEAST = 460;

const KINDS = [
  { hue: "guest_l1", words: "vCPU" },
  { hue: "userspace", words: "threads of a VMM" },
  { hue: "irq", words: "interrupt" },
  { hue: "task", words: "others of the host" },
];

export function Topology({ title, panels }: { title: string; panels: Panel[] }) {
  const box = useRef<HTMLDivElement>(null);
  const { inside, width, height } = machines(panels, Math.max(LEAST, useWidth(box)));
  const used = new Set(
    panels.flatMap(({ nodes }) =>
      nodes.flatMap(({ cores }) => cores.flat().flatMap((cpu) => cpu.hues ?? [])),
    ),
  );
  return (
    <>
      <div class="wide" ref={box} tabIndex={0} role="group" aria-label={title}>
        <svg
          class="picture"
          viewBox={`-1 -1 ${width} ${height}`}
          style={{ maxWidth: `${width}px`, minWidth: `${Math.min(width, LEAST)}px` }}
          role="img"
          aria-label={`${title}: ${counted(panels.length, "placement")}`}
          // All words in it are escaped (draw/machines.ts).
          dangerouslySetInnerHTML={{ __html: inside }}
        />
      </div>
      <ul class="keys">
        {KINDS.filter(({ hue }) => used.has(hue)).map(({ hue, words }) => (
          <LegendEntry key={hue} text={words}>
            <rect width="12" height="12" fill={`url(#pat-${hue})`} />
          </LegendEntry>
        ))}
        <LegendEntry text="shared with a vCPU or a thread that polls">
          <rect x="1" y="1" width="22" height="10" rx="2" fill="none" stroke="var(--ink)" stroke-width="2" />
        </LegendEntry>
      </ul>
    </>
  );
}
