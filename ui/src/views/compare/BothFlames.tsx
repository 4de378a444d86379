/** Both flames on one scale: what is as wide took as large a share of the vCPUs' time. */
import { useMemo, useRef } from "preact/hooks";
import { fillOf } from "../../draw/tokens";
import { elided, wideOf } from "../../draw/words";
import { type PlacedPair, pairTree, sideOf } from "../../maths/both";
import { pointsIn } from "../../maths/compare";
import { percent } from "../../maths/format";
import { csv } from "../../maths/rows";
import { go, hash } from "../../state/store";
import { Empty, Figure } from "../Figure";
import { FlameTools } from "../FlameTools";
import { useWidth } from "../useSize";
import type { Sides } from "./Names";

const ROW = 30;
const LEAST_PIXELS = 1;
/** A part that is narrower has no name in it. */
const TEXT_PIXELS = 40;

export function BothFlames({ before, after }: Sides) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const root = useMemo(() => {
    const states = [before, after].flatMap(({ timeline }) => timeline?.states ?? []);
    const titles = new Map(states.map(({ name, title }) => [name, title]));
    return pairTree(
      [before.report, after.report],
      (state) => titles.get(state) ?? state.replaceAll("_", " "),
    );
  }, [before, after]);
  const lacking = root.before === 0 ? before : root.after === 0 ? after : null;
  if (lacking)
    return (
      <Empty title="The flames cannot be compared">{lacking.id} contains no vCPU whose time is known.</Empty>
    );
  const focus = (hash.value.focus2 ?? "").split("\t").filter(Boolean);
  const search = (hash.value.q ?? "").toLowerCase();
  const open = (path: string[]) => go({ focus2: path.join("\t") });
  const sides = (["before", "after"] as const).map((side) => ({
    side,
    recording: side === "before" ? before : after,
    parts: sideOf(root, side, focus, LEAST_PIXELS / width),
  }));
  const all = sideOf(root, "before", [], -1);
  // That less is unknown is no change of what happened.
  const leaves = all
    .filter(({ depth, pair }) => depth === 2 && pair.state !== "unknown")
    .map(({ pair }) => pair);
  const largest = [...leaves].sort((a, b) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before))[0];
  return (
    <Figure
      id="both-flames"
      title="Where does the time go, before and after?"
      csv={() =>
        csv(
          ["path", "before", "after"],
          all.map(({ path, pair }) => [path.join(" > "), pair.before, pair.after]),
        )
      }
      caption={`${largest ? `The largest difference is "${largest.name}": ${percent(largest.before)} of the vCPUs' time before, ${percent(largest.after)} after. ` : ""}Width is the share of the time of all vCPUs, on one scale for both; parts stand in one order. From the top by level, state, reason, detail, summed over VMs and vCPUs. The points behind a part of the lower picture are how much its share of the time changed. Of the whole recordings. Click a part, or press Enter on it, to open it in both.`}
      tools={<FlameTools focus={focus} open={open} label="Find in both pictures" />}
    >
      <div ref={box}>
        {sides.map(({ side, recording, parts }) => (
          <section key={side} class="both-side">
            <h3>
              {side === "before" ? "Before" : "After"} <span class="soft">{recording.id}</span>
            </h3>
            {parts.length === 0 ? (
              <p class="soft">No time at all in this part.</p>
            ) : (
              <svg
                class="picture flame"
                viewBox={`0 0 ${width} ${(Math.max(...parts.map(({ depth }) => depth)) + 1) * ROW}`}
                role="group"
                aria-label={`Time by level, state and reason, ${side}: ${recording.id}`}
              >
                {parts.map((part) => (
                  <Part
                    key={part.path.join("/")}
                    part={part}
                    side={side}
                    width={width}
                    dim={search !== "" && !part.pair.name.toLowerCase().includes(search)}
                    open={open}
                  />
                ))}
              </svg>
            )}
          </section>
        ))}
      </div>
    </Figure>
  );
}

function Part({
  part: { pair, path, depth, from, to },
  side,
  width,
  dim,
  open,
}: {
  part: PlacedPair;
  side: "before" | "after";
  width: number;
  dim: boolean;
  open: (path: string[]) => void;
}) {
  const [left, wide] = [from * width, (to - from) * width];
  const able = pair.children.length > 0 && wide > TEXT_PIXELS;
  const change = pointsIn(pair.before, pair.after);
  const isTop = path.length === 0;
  const said = [pair.name, percent(pair[side]), ...(side === "after" && !isTop ? [change] : [])];
  const room = wide - 14;
  // Whole words only: first without the change, then without the share.
  const words = [said.join(" "), said.slice(0, 2).join(" "), pair.name].find((text) => wideOf(text) <= room);
  const shown = words ?? elided(pair.name, room);
  return (
    <g
      role={able ? "button" : undefined}
      tabIndex={able ? 0 : undefined}
      onClick={() => able && open(path)}
      onKeyDown={(event) => able && event.key === "Enter" && open(path)}
      opacity={dim ? 0.3 : 1}
    >
      <title>{`${path.join(" > ") || pair.name}: ${percent(pair.before)} before, ${percent(pair.after)} after, ${change}`}</title>
      <rect
        x={left}
        y={depth * ROW}
        width={Math.max(0.5, wide - 1)}
        height={ROW - 2}
        rx="2"
        fill={pair.state ? fillOf(pair.state) : "var(--panel)"}
        stroke="var(--line)"
        stroke-width="0.5"
      />
      {wide >= TEXT_PIXELS && shown && (
        <>
          {pair.state && (
            <rect
              x={left + 4}
              y={depth * ROW + 6}
              width={Math.min(wide - 9, wideOf(shown) + 8)}
              height={ROW - 14}
              rx="2"
              fill="var(--page)"
              opacity="0.9"
            />
          )}
          <text x={left + 8} y={depth * ROW + ROW / 2 + 3}>
            {shown}
          </text>
        </>
      )}
    </g>
  );
}
