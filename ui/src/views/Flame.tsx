/** View 'Flame': where does time go, from the level down to the reason? An icicle: width is time. */

import { useMemo, useRef } from "preact/hooks";
import type { Recording } from "../data/source";
import { fillOf } from "../draw/tokens";
import { elided, wideOf } from "../draw/words";
import { counted, duration, percent } from "../maths/format";
import { csv, rowsOf, tableOf } from "../maths/rows";
import { icicle, largest, type Placed, sampleTree, timeTree } from "../maths/tree";
import { go, hash, part } from "../state/store";
import { Empty, Figure } from "./Figure";
import { FlameTools } from "./FlameTools";
import { limitsOf, SeenBy, seenBy } from "./SeenBy";
import { useReport } from "./useReport";
import { useHeight, useWidth } from "./useSize";

/** Rows are as high as lets the whole picture fill the screen. */
const ROW = { least: 30, most: 96 };
/** What stands above and below the picture. */
const AROUND = 300;
const THIN_PIXELS = 1;
/** A part that is narrower has no name in it. */
const NAMED_PIXELS = 40;
const PAD = 7;
const LANES = ["VM", "vCPU"];
const TIME = ["level", "state", "reason", "detail"];
const SAMPLES = ["level", "state", "code", "function"];

export function Flame({ recording }: { recording: Recording }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const high = useHeight();
  const { report, note, window } = useReport(recording);
  const lanes = { report, rows: rowsOf(tableOf(report, "flow.vcpus")) };
  const witness = seenBy(lanes);
  const apart = hash.value.split === "vcpu";
  const { time, samples } = useMemo(() => {
    const titles = new Map(recording.timeline?.states.map((state) => [state.name, state.title]));
    const title = (state: string) => titles.get(state) ?? state.replaceAll("_", " ");
    const options = { by: apart ? "vcpu" : "state", seenBy: witness } as const;
    return { time: timeTree(report, title, options), samples: sampleTree(report, title, options) };
  }, [recording, report, apart, witness]);
  const sampled = hash.value.width === "samples" && samples.size > 0;
  const tree = sampled ? samples : time;
  const opened = part("focus") ?? "";
  const focus = opened.split("\t").filter(Boolean);
  const placed = useMemo(() => icicle(tree, focus, THIN_PIXELS / width), [tree, opened, width]);
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
  const search = (hash.value.q ?? "").toLowerCase();
  const depth = Math.max(...placed.map((it) => it.depth)) + 1;
  const row = Math.floor(Math.min(ROW.most, Math.max(ROW.least, (high - AROUND) / depth)));
  const top = placed[0]!;
  const isFound = ({ names }: Placed) => names.some((name) => name.toLowerCase().includes(search));
  const found = search ? placed.filter(isFound) : [];
  const open = (path: string[]) => go({ focus: path.join("\t") });
  const most = largest(top.node);
  const names = [...(apart ? LANES : []), ...(sampled ? SAMPLES : TIME)];
  const below = names.slice(Math.min(focus.length, names.length - 1));
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
      caption={`The largest part is "${most.name}", ${percent(most.size / top.node.size)}. ${sampled ? "Width is the number of profiler samples" : "Width is time"}, ${print(top.node.size)} in all${apart ? "" : ", of all vCPUs together"}; from the top by ${below.join(", ")}.${limitsOf(lanes)} ${sampled ? "Each sample counts for the state of its vCPU and for the function that it hit." : "Reasons divide the state that handles them in proportion to their time from exit to entry; details divide their reason likewise."} Click a part, or press Enter on it, to open it.${search ? ` Matching: ${counted(found.length, "part")}.` : ""}`}
      tools={
        <>
          <SeenBy {...lanes} />
          {lanes.rows.length > 1 && (
            <button
              type="button"
              aria-pressed={apart}
              onClick={() => go({ split: apart ? null : "vcpu", focus: null })}
            >
              by vCPU
            </button>
          )}
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
          viewBox={`0 0 ${width} ${depth * row}`}
          height={depth * row}
          role="group"
          aria-label={`${sampled ? "Samples" : "Time"} by ${names.join(", ")}`}
        >
          {placed.map((it) => (
            <Part
              key={it.path.join("/")}
              it={it}
              size={{ width, row }}
              words={[nameOf(it, focus), percent(it.node.size / top.node.size), print(it.node.size)]}
              lit={search === "" ? null : isFound(it)}
              open={open}
            />
          ))}
        </svg>
      </div>
    </Figure>
  );
}

/** What a part is called; the one that is open has its whole path. */
function nameOf({ path, depth, names, node }: Placed, focus: string[]): string {
  if (depth === 0) return focus.length === 0 ? "all vCPUs" : path.join(" > ");
  return names.length > 1 ? node.name : (path.at(-1) ?? "");
}

/** How many names of thin parts are listed. */
const LISTED = 8;

/** A part with as many of its words as fit: its name, its share, how much it is. `lit`: found, or not, while one searches. */
function Part({
  it: { node, path, depth, from, to, names },
  size: { width, row },
  words,
  lit,
  open,
}: {
  it: Placed;
  size: { width: number; row: number };
  words: [string, string, string];
  lit: boolean | null;
  open: (path: string[]) => void;
}) {
  const [left, wide] = [from * width, (to - from) * width];
  const isOne = names.length === 1;
  const able = isOne && node.children.length > 0;
  const full = isOne ? path.join(" > ") || words[0] : `${words[0]}, each narrower than a pixel`;
  const said = [
    `${full}: ${words[2]}, ${words[1]}`,
    isOne ? "" : `${names.slice(0, LISTED).join(", ")}${names.length > LISTED ? ", …" : ""}`,
    node.exits > 0 ? `${counted(node.exits, "exit")}, ${duration(node.exits_ns)} from exit to entry` : "",
  ];
  return (
    <g
      role={able && wide > NAMED_PIXELS ? "button" : undefined}
      tabIndex={able && wide > NAMED_PIXELS ? 0 : undefined}
      onClick={() => able && open(path)}
      onKeyDown={(event) => able && event.key === "Enter" && open(path)}
      opacity={lit === false ? 0.25 : 1}
    >
      <title>{said.filter(Boolean).join("\n")}</title>
      <rect
        x={left}
        y={depth * row}
        width={Math.max(0.5, wide - (wide > 3 ? 1 : 0))}
        height={row - 2}
        rx={wide > 6 ? 2 : 0}
        fill={node.state ? fillOf(node.state) : "var(--panel)"}
        stroke={lit ? "var(--ink)" : "var(--line)"}
        stroke-width={lit ? 2 : wide > 3 ? 0.5 : 0}
      />
      {wide >= NAMED_PIXELS && (
        <Words words={words} x={left} y={depth * row} wide={wide} row={row} plain={!node.state} />
      )}
    </g>
  );
}

/** Words on their own ground, so that they read on every hue and pattern: on two lines where a row is high enough. */
function Words({
  words: [name, share],
  x,
  y,
  wide,
  row,
  plain,
}: {
  words: [string, string, string];
  x: number;
  y: number;
  wide: number;
  row: number;
  plain: boolean;
}) {
  const room = wide - 2 * PAD - 2;
  const both = `${name} ${share}`;
  const lines =
    row < 46 || wideOf(both) <= room
      ? [wideOf(both) <= room ? both : elided(name, room)]
      : [elided(name, room), wideOf(share) <= room ? share : ""];
  const shown = lines.filter(Boolean);
  const top = y + (row - 2) / 2 - shown.length * 8;
  return (
    <>
      {!plain && shown.length > 0 && (
        <rect
          x={x + 4}
          y={top - 1}
          width={Math.min(wide - 9, Math.max(...shown.map((line) => wideOf(line))) + 8)}
          height={shown.length * 16 + 2}
          rx="2"
          fill="var(--page)"
          opacity="0.88"
        />
      )}
      {shown.map((line, i) => (
        <text key={line} x={x + PAD} y={top + 12 + i * 16}>
          {line}
        </text>
      ))}
    </>
  );
}
