/** View 'Flame': where does time go, from the VM down to the reason? An icicle: width is time. */

import { useMemo, useRef } from "preact/hooks";
import type { Recording } from "../data/source";
import { fillOf } from "../draw/tokens";
import { counted, duration, percent } from "../maths/format";
import { csv } from "../maths/rows";
import { icicle, type Node, sampleTree, timeTree } from "../maths/tree";
import { go, hash } from "../state/store";
import { Empty, Figure } from "./Figure";
import { FlameTools } from "./FlameTools";
import { useReport } from "./useReport";
import { useWidth } from "./useSize";

const ROW = 30;
const CULL_PIXELS = 1;
const TEXT_PIXELS = 26;
const LEVELS = ["everything", "VM", "vCPU", "level", "state", "reason", "detail"];
const SAMPLE_LEVELS = ["everything", "VM", "vCPU", "level", "state", "code", "function"];

export function Flame({ recording }: { recording: Recording }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { report, note, window } = useReport(recording);
  const { time, samples } = useMemo(() => {
    const titles = new Map(recording.timeline?.states.map((state) => [state.name, state.title]));
    const title = (state: string) => titles.get(state) ?? state.replaceAll("_", " ");
    return { time: timeTree(report, title), samples: sampleTree(report, title) };
  }, [recording, report]);
  const sampled = hash.value.width === "samples" && samples.size > 0;
  const tree = sampled ? samples : time;
  const print = (size: number) => (sampled ? counted(size, "sample") : duration(Math.round(size)));
  if (tree.size === 0) {
    return (
      <Empty title="No vCPU time">
        {window
          ? "The time of no vCPU is known in this window."
          : "The time of no vCPU is known. Run kvmscope record on the host to record kvm_entry and kvm_exit."}
      </Empty>
    );
  }
  const focus = (hash.value.focus ?? "").split("\t").filter(Boolean);
  const search = (hash.value.q ?? "").toLowerCase();
  const placed = icicle(tree, focus, CULL_PIXELS / width);
  const depth = Math.max(...placed.map((it) => it.depth)) + 1;
  const top = placed[0]!;
  const found = search ? placed.filter((it) => it.node.name.toLowerCase().includes(search)) : [];
  const open = (path: string[]) => go({ focus: path.join("\t") });
  const largestPart = largest(top.node);
  return (
    <Figure
      id="flame"
      title="Where does the time go, level by level?"
      note={note}
      csv={() =>
        csv(
          ["path", sampled ? "samples" : "ns"],
          icicle(tree, [], 0).map((it) => [it.path.join(" > "), Math.round(it.node.size)]),
        )
      }
      caption={`${sampled ? "Width is the number of profiler samples" : "Width is time"}, ${print(top.node.size)} in all; from the top by ${(sampled ? SAMPLE_LEVELS : LEVELS).slice(Math.min(Math.max(1, focus.length), 6)).join(", ")}. The largest part is "${largestPart.name}", ${percent(largestPart.size / top.node.size)}. ${sampled ? "Each sample counts for the state of its vCPU and for the function that it hit." : "Reasons divide the state that handles them in proportion to their time from exit to entry; details divide their reason likewise."} Click a part, or press Enter on it, to open it.${search ? ` Matching: ${counted(found.length, "part")}.` : ""}`}
      tools={
        <>
          {samples.size > 0 && (
            <select
              aria-label="Width is"
              value={sampled ? "samples" : "time"}
              onChange={(event) => go({ width: event.currentTarget.value, focus: null })}
            >
              <option value="time">width is time</option>
              <option value="samples">width is samples</option>
            </select>
          )}
          <FlameTools focus={focus} open={open} label="Find in the picture" />
        </>
      }
    >
      <div ref={box}>
        <svg
          class="picture flame"
          viewBox={`0 0 ${width} ${depth * ROW}`}
          height={depth * ROW}
          role="group"
          aria-label={`${sampled ? "Samples" : "Time"} by VM, vCPU, level, state and reason`}
        >
          {placed.map((it) => {
            const left = it.from * width;
            const wide = (it.to - it.from) * width;
            const name = it.path.at(-1) ?? (focus.length === 0 ? "all vCPUs" : "");
            const able = it.node.children.length > 0 && wide > TEXT_PIXELS;
            const dim = search !== "" && !it.node.name.toLowerCase().includes(search);
            return (
              <g
                key={it.path.join("/")}
                role={able ? "button" : undefined}
                tabIndex={able ? 0 : undefined}
                onClick={() => open(it.path)}
                onKeyDown={(event) => event.key === "Enter" && open(it.path)}
                opacity={dim ? 0.3 : 1}
              >
                <title>{`${it.path.join(" > ") || "all vCPUs"}: ${print(it.node.size)}, ${percent(it.node.size / top.node.size)}${it.node.note ? `\n${it.node.note}` : ""}`}</title>
                <rect
                  x={left}
                  y={it.depth * ROW}
                  width={Math.max(0.5, wide - 1)}
                  height={ROW - 2}
                  rx="2"
                  fill={it.node.state ? fillOf(it.node.state) : "var(--panel)"}
                  stroke="var(--line)"
                  stroke-width="0.5"
                />
                {wide > TEXT_PIXELS && (
                  <Name
                    text={`${name} ${wide > 150 ? percent(it.node.size / top.node.size) : ""}`}
                    x={left}
                    y={it.depth * ROW}
                    wide={wide}
                    plain={!it.node.state}
                  />
                )}
              </g>
            );
          })}
        </svg>
      </div>
    </Figure>
  );
}

/** A name on its own ground, so that it reads on every hue and pattern. */
function Name({
  text,
  x,
  y,
  wide,
  plain,
}: {
  text: string;
  x: number;
  y: number;
  wide: number;
  plain: boolean;
}) {
  const room = Math.floor((wide - 10) / 6.8);
  const shown = text.trim().length > room ? `${text.slice(0, Math.max(1, room - 1))}…` : text.trim();
  return (
    <>
      {!plain && (
        <rect
          x={x + 4}
          y={y + 6}
          width={Math.min(wide - 9, shown.length * 6.5 + 8)}
          height={ROW - 14}
          rx="2"
          fill="var(--page)"
          opacity="0.88"
        />
      )}
      <text x={x + 8} y={y + ROW / 2 + 3}>
        {shown}
      </text>
    </>
  );
}

function largest(node: Node): Node {
  const leaves = (it: Node): Node[] =>
    it.children.length === 0 || it.children[0]?.note ? [it] : it.children.flatMap(leaves);
  return leaves(node).reduce((a, b) => (b.size > a.size ? b : a));
}
