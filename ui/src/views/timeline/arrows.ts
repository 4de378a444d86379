/**
 * Arrows between slices, as far as slices that are drawn tell of them:
 *
 * ```text
 * reflect     a chain: from the exit of L2 to where L2 runs again; and to L1's own record of that exit
 * preempted   from the vCPU to the task that its CPU runs from the same nanosecond on
 * woken       from the lane of the waker to that of the thread that it woke (wakes.ts)
 * ```
 */
import { useEffect, useState } from "preact/hooks";
import type { Recording } from "../../data/source";
import type { Chain, Slices, Timeline } from "../../data/types";
import { token } from "../../draw/tokens";
import { counted } from "../../maths/format";
import type { Window } from "../../maths/window";
import { kindOf, type LanePlace, rowOf } from "./layout";
import { type Arrows, label, type Scene, timeToX } from "./picture";
import { SETTLE_MS } from "./sums";
import { wakeLinks } from "./wakes";

export interface End {
  lane: number;
  ns: number;
  state: string;
}

export interface Link {
  from: End;
  to: End;
  label: string;
  /** Where on the way from one lane to another the words stand; half of it where nothing is said. */
  at?: number;
}

/** Closer than this, arrows would hide what they are about. */
const MOST_CHAINS = 60;
const MOST_WAKES = 60;

export function linksOf(timeline: Timeline, stairs: Map<number, Slices>, chains: Chain[]): Link[] {
  const name = (state: number) => timeline.states[state]?.name ?? "unknown";
  const of = (...kinds: string[]) =>
    timeline.lanes.filter((lane) => kinds.includes(kindOf(lane)) && stairs.has(lane.id));
  const links: Link[] = [];
  const began = new Map<number, { lane: number; detail: string }[]>();
  for (const { id } of of("cpu", "guest_cpu")) {
    for (const slice of stairs.get(id)!.slices) {
      if (name(slice.state) !== "task") continue;
      const same = began.get(slice.from_ns) ?? [];
      same.push({ lane: id, detail: slice.detail });
      began.set(slice.from_ns, same);
    }
  }
  for (const { id } of of("vcpu")) {
    for (const { state, from_ns } of stairs.get(id)!.slices) {
      const by = name(state) === "preempted" ? (began.get(from_ns) ?? []) : [];
      // Two CPUs that switch in one nanosecond: which of them it was, no slice says.
      if (by.length !== 1) continue;
      const from = { lane: id, ns: from_ns, state: "preempted" };
      links.push({ from, to: { lane: by[0]!.lane, ns: from_ns, state: "task" }, label: by[0]!.detail });
    }
  }
  for (const { lane, reason, from_ns, to_ns, exits, cost_ns } of chains) {
    if (!stairs.has(lane)) continue;
    const from = { lane, ns: from_ns, state: "guest_l2" };
    if (cost_ns !== null)
      links.push({
        from,
        to: { lane, ns: to_ns, state: "guest_l2" },
        label: `${reason}: ${counted(exits, "exit")} of L1`,
      });
    const seen = of("guest_vcpu").flatMap(({ id }) =>
      stairs
        .get(id)!
        .slices.filter(
          (slice) => slice.detail === reason && slice.from_ns >= from_ns && slice.from_ns < to_ns,
        )
        .map((slice) => ({ lane: id, ns: slice.from_ns, state: name(slice.state) })),
    );
    if (seen.length === 1) links.push({ from, to: seen[0]!, label: `${reason} in L1's own trace` });
  }
  return links;
}

/** Where a lane's state is drawn in it, from the whole's upper edge. */
function heightOf(lane: LanePlace, state: string): number {
  const row = lane.height / (lane.steps?.length ?? 1);
  return lane.top + (lane.steps ? (rowOf(lane.steps, state) + 0.5) * row : lane.height / 2);
}

function draw(links: Link[], context: CanvasRenderingContext2D, scene: Scene, width: number): void {
  context.lineWidth = 1.5;
  context.font = "10px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { from, to, label: words, at = 0.5 } of links) {
    const ends = [from, to].map(({ lane, ns, state }) => {
      const row = scene.layout.lanes.find((known) => known.id === lane);
      return row && { x: timeToX(ns, scene.window, width), y: heightOf(row, state) };
    });
    const [a, b] = ends;
    if (!a || !b || Math.max(a.x, b.x) < 0 || Math.min(a.x, b.x) > width) continue;
    context.strokeStyle = token("ink", scene.theme);
    context.fillStyle = token("ink", scene.theme);
    // An arc within one lane, a bow between two.
    const flat = from.lane === to.lane;
    const bend = flat
      ? { x: (a.x + b.x) / 2, y: Math.min(a.y, b.y) - 14 }
      : { x: a.x + 14, y: (a.y + b.y) / 2 };
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.quadraticCurveTo(bend.x, bend.y, b.x, b.y);
    context.stroke();
    const turn = Math.atan2(b.y - bend.y, b.x - bend.x);
    context.beginPath();
    context.moveTo(b.x, b.y);
    for (const side of [-0.45, 0.45])
      context.lineTo(b.x - 8 * Math.cos(turn + side), b.y - 8 * Math.sin(turn + side));
    context.fill();
    const beside = bend.x + 2;
    const [left, right] = flat
      ? [Math.min(a.x, b.x), Math.max(a.x, b.x)]
      : [beside, beside + context.measureText(words).width + 9];
    label(context, scene.theme, words, left, right, flat ? (a.y + bend.y) / 2 : a.y + at * (b.y - a.y));
  }
  context.lineWidth = 1;
}

/** Those with both ends on screen; none where they are too many to tell apart. */
function few(links: Link[], { window: { t0, t1 }, layout }: Scene): Link[] {
  const lanes = new Set(layout.lanes.map(({ id }) => id));
  const seen = links.filter(
    ({ from, to }) => lanes.has(from.lane) && lanes.has(to.lane) && from.ns >= t0 && from.ns <= t1,
  );
  return seen.length > MOST_WAKES ? [] : seen;
}

/** Those of what is drawn; none while they are off, or where chains are too many to tell apart. */
export function useArrows(
  recording: Recording,
  on: boolean,
  stairs: Map<number, Slices>,
  window: Window,
): Arrows | null {
  const [chains, setChains] = useState<Chain[]>([]);
  const wanted = on && stairs.size > 0;
  useEffect(() => {
    if (!wanted) return setChains([]);
    let current = true;
    const timer = setTimeout(() => {
      recording.chains({ t0: Math.floor(window.t0), t1: Math.ceil(window.t1), limit: MOST_CHAINS }).then(
        (found) => current && setChains(found.total <= MOST_CHAINS ? found.chains : []),
        () => undefined,
      );
    }, SETTLE_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [recording, wanted, window.t0, window.t1]);
  if (!wanted) return null;
  const links = linksOf(recording.timeline!, stairs, chains);
  const wakes = wakeLinks(recording.timeline!, stairs);
  return (context, scene, width) => draw([...links, ...few(wakes, scene)], context, scene, width);
}
