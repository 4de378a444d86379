/**
 * Where each lane lies: groups below each other, each with a line that folds it; folded, it is one thin lane.
 *
 * ```text
 * ▾ web-1            vCPU 0  |▆▆▃▃▆▆|      kind vcpu: open unless the address says otherwise
 *                    vCPU 1  |▆▃▃▆▆▆|
 * ▸ host CPUs (8)            |▃▃▃▃▃▃|      all other kinds: folded, the mean of their lanes
 * ```
 */
import type { Lane, LaneKind, Slices, Timeline } from "../../data/types";
import { lookOf, type Step } from "../../draw/tokens";

export const AXIS_HEIGHT = 26;
export const LANE_GAP = 10;
const GROUP_HEIGHT = 24;
const STEP_HEIGHT = { least: 15, most: 26 };
const COVER_HEIGHT = { least: 48, most: 220 };
/** Lanes that explain the vCPUs are lower than theirs. */
const SIDE_HEIGHT = 34;

const STEPS: Record<LaneKind, Step[]> = {
  vcpu: ["L3", "L2", "L1", "L0", "VMM", "off CPU", "unknown"],
  cpu: ["L3", "L2", "L1", "L0", "VMM", "task", "off CPU", "unknown"],
  vhost: ["task", "off CPU", "unknown"],
  emulator: ["task", "off CPU", "unknown"],
  iothread: ["task", "off CPU", "unknown"],
  guest_vcpu: ["L3", "L2", "L1", "VMM", "off CPU", "unknown"],
  guest_cpu: ["L3", "L2", "L1", "VMM", "task", "off CPU", "unknown"],
};

export interface GroupPlace {
  key: string;
  title: string;
  top: number;
  height: number;
  folded: boolean;
  lanes: number[];
}

export interface LanePlace {
  id: number;
  top: number;
  height: number;
  steps: Step[] | null;
}

export interface Layout {
  /** Empty where there is one group alone. */
  groups: GroupPlace[];
  lanes: LanePlace[];
  height: number;
}

export const kindOf = (lane: Lane): LaneKind => lane.kind ?? "vcpu";

/** The row of a state; one that has no row of its own here is drawn in the lowest, never as a guest. */
export function rowOf(steps: Step[], state: string): number {
  const row = steps.indexOf(lookOf(state).step);
  return row < 0 ? steps.length - 1 : row;
}

/** Lanes of one group stand together; vCPUs come first, as they are given. */
export function groupsOf(lanes: Lane[]): { key: string; title: string; lanes: Lane[]; open: boolean }[] {
  const found = new Map<string, Lane[]>();
  for (const lane of lanes) {
    const mine = found.get(lane.group) ?? [];
    mine.push(lane);
    found.set(lane.group, mine);
  }
  return [...found].map(([key, mine]) => {
    const open = kindOf(mine[0]!) === "vcpu";
    return { key, title: mine.length > 1 ? `${key} (${mine.length})` : key, lanes: mine, open };
  });
}

/** `turned`: groups that are the other way round than they are by themselves. */
export function layout(
  timeline: Timeline,
  shown: Lane[],
  stairs: Map<number, Slices>,
  turned: Set<string>,
  room: number,
): Layout {
  const used = new Set<string>(timeline.states.map((state) => lookOf(state.name).step));
  const all = groupsOf(shown).map((group) => ({ ...group, open: group.open !== turned.has(group.key) }));
  const headed = all.length > 1;
  const main = all.filter((group) => group.open).flatMap((group) => group.lanes);
  const wide = Math.max(1, main.filter((lane) => kindOf(lane) === "vcpu").length);
  // Few lanes share the height of the screen, many are as low as still reads.
  const fair = (room - (headed ? all.length * GROUP_HEIGHT : 0)) / wide - LANE_GAP;
  const out: Layout = { groups: [], lanes: [], height: 0 };
  let top = AXIS_HEIGHT + 4;
  for (const { key, title, lanes, open } of all) {
    if (headed) {
      const ids = lanes.map((lane) => lane.id);
      out.groups.push({ key, title, top, height: GROUP_HEIGHT - 6, folded: !open, lanes: ids });
      top += GROUP_HEIGHT;
    }
    if (!open) continue;
    for (const lane of lanes) {
      const steps = STEPS[kindOf(lane)].filter((step) => !["L3", "unknown"].includes(step) || used.has(step));
      const stair = stairs.has(lane.id);
      const height = stair
        ? steps.length * within(STEP_HEIGHT, fair / steps.length)
        : kindOf(lane) === "vcpu"
          ? within(COVER_HEIGHT, fair)
          : SIDE_HEIGHT;
      out.lanes.push({ id: lane.id, top, height, steps: stair ? steps : null });
      top += height + LANE_GAP;
    }
  }
  out.height = top;
  return out;
}

function within({ least, most }: { least: number; most: number }, height: number): number {
  return Math.round(Math.min(most, Math.max(least, height)));
}
