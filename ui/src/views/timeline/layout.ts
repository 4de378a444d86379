/**
 * Where each lane lies: groups below each other, each with a line that folds it; folded, it is one thin lane.
 *
 * ```text
 * ▾ web-1            vCPU 0  |▆▆▃▃▆▆|      kind vcpu: open unless the address says otherwise
 *                    vCPU 1  |▆▃▃▆▆▆|
 * ▸ host CPUs (8)            |▃▃▃▃▃▃|      all other kinds: folded, the mean of their lanes, which stays once unfolded
 * ```
 *
 * They explain the vCPUs. Without any vCPU they are what there is to see, and open.
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
  /** Whether its line has the mean of its lanes: what is unfolded keeps what was there before. */
  mean: boolean;
  lanes: number[];
}

export interface LanePlace {
  id: number;
  top: number;
  height: number;
  /** Rows of the staircase; null where it is drawn as shares. */
  steps: Step[] | null;
  /** Whether it may become a staircase. */
  deep: boolean;
  /** Whether its group is not named above it. */
  alone: boolean;
}

export interface Layout {
  /** Empty where there is one group alone. */
  groups: GroupPlace[];
  lanes: LanePlace[];
  height: number;
}

/** Which lanes are shown, and in which order. */
export interface Order {
  /** Each of these words must be in the name, the group or the kind. */
  filter: string;
  /** First of all. */
  pinned: number[];
  /** All lanes, the first one first, and what for; null: as they are given. */
  sorted: { ids: number[]; title: string } | null;
}

export const AS_GIVEN: Order = { filter: "", pinned: [], sorted: null };

/** What the layout follows. */
export interface Room {
  /** Height that lanes share. */
  height: number;
  /** Whether a lane has few enough slices for a staircase, judged by all of the recording: that does not change while one scrolls. */
  fewInMean: (lane: Lane) => boolean;
}

export const kindOf = (lane: Lane): LaneKind => lane.kind ?? "vcpu";

const isVcpu = (lane: Lane) => kindOf(lane) === "vcpu";

/** The row of a state; one that has no row of its own here is drawn in the lowest, never as a guest. */
export function rowOf(steps: Step[], state: string): number {
  const row = steps.indexOf(lookOf(state).step);
  return row < 0 ? steps.length - 1 : row;
}

interface Group {
  key: string;
  title: string;
  lanes: Lane[];
  open: boolean;
}

/** Lanes of one group stand together; vCPUs come first, as they are given. */
export function groupsOf(lanes: Lane[], hasVcpus = lanes.some(isVcpu)): Group[] {
  const found = new Map<string, Lane[]>();
  for (const lane of lanes) {
    const mine = found.get(lane.group) ?? [];
    mine.push(lane);
    found.set(lane.group, mine);
  }
  return [...found].map(([key, mine]) => {
    const open = isVcpu(mine[0]!) || !hasVcpus;
    return { key, title: mine.length > 1 ? `${key} (${mine.length})` : key, lanes: mine, open };
  });
}

export function fits(lane: Lane, filter: string): boolean {
  const name = `${lane.title} ${lane.group} ${kindOf(lane)}`.toLowerCase();
  // Who writes 1 means neither 10 nor 170.
  const has = (word: string) => (/^\d+$/.test(word) ? name.split(/\D+/).includes(word) : name.includes(word));
  return filter.toLowerCase().split(/\s+/).every(has);
}

/** Groups in the order they are drawn in: what is pinned, what is sorted, and the rest as it is given. */
function ordered(shown: Lane[], { filter, pinned, sorted }: Order): Group[] {
  const left = new Set(shown.filter((lane) => fits(lane, filter)));
  const take = (ids: number[]) => {
    const taken = ids.flatMap((id) => [...left].filter((lane) => lane.id === id));
    for (const lane of taken) left.delete(lane);
    return taken;
  };
  const first = take(pinned);
  const byId = new Map([...left].map((lane) => [lane.id, lane]));
  const main = sorted?.ids.flatMap((id) => byId.get(id) ?? []).filter(isVcpu) ?? [];
  for (const lane of main) left.delete(lane);
  const of = (key: string, title: string, lanes: Lane[]) =>
    lanes.length > 0 ? [{ key, title, lanes, open: true }] : [];
  // Who filters wants to see what fits, of whatever kind.
  const rest = groupsOf([...left], shown.some(isVcpu)).map((group) => ({
    ...group,
    open: group.open || filter !== "",
  }));
  return [
    ...of(PINNED, `Pinned (${first.length})`, first),
    ...of(SORTED, sorted ? `${sorted.title} (${main.length})` : "", main),
    ...rest,
  ];
}

/** Keys that no group of a recording has. */
const PINNED = "\u0001pinned";
const SORTED = "\u0001sorted";

/** Up to so many lanes get taller as soon as their slices are there; more keep their heights while one scrolls. */
const FEW = 8;

/** `turned`: groups that are the other way round than they are by themselves. */
export function layout(
  timeline: Timeline,
  shown: Lane[],
  stairs: Map<number, Slices>,
  turned: Set<string>,
  room: Room,
  order: Order = AS_GIVEN,
): Layout {
  const used = new Set<string>(timeline.states.map((state) => lookOf(state.name).step));
  const hasVcpus = shown.some(isVcpu);
  const groups = ordered(shown, order);
  const headed = groups.length > 1;
  // Of one group alone there is no line to unfold it by.
  const all = groups.map((group) => {
    const open = !headed || group.open !== turned.has(group.key);
    return { ...group, open, mean: !open || !group.open };
  });
  const main = all.filter((group) => group.open).flatMap((group) => group.lanes);
  const many = main.length > FEW;
  // Lanes of one kind are drawn alike: as most of them can be.
  const kinds = [...new Set(main.map(kindOf))];
  const isDeep = (kind: LaneKind) => {
    const alike = main.filter((lane) => kindOf(lane) === kind);
    return 2 * alike.filter(room.fewInMean).length > alike.length;
  };
  const shares = new Set(many ? kinds.filter((kind) => !isDeep(kind)) : []);
  const wide = Math.max(1, hasVcpus ? main.filter(isVcpu).length : main.length);
  // Few lanes share the height of the screen, many are as low as still reads.
  const fair = (room.height - (headed ? all.length * GROUP_HEIGHT : 0)) / wide - LANE_GAP;
  const out: Layout = { groups: [], lanes: [], height: 0 };
  let top = AXIS_HEIGHT + 4;
  for (const { key, title, lanes, open, mean } of all) {
    if (headed) {
      const ids = lanes.map((lane) => lane.id);
      out.groups.push({ key, title, top, height: GROUP_HEIGHT - 6, folded: !open, mean, lanes: ids });
      top += GROUP_HEIGHT;
    }
    if (!open) continue;
    for (const lane of lanes) {
      const own = STEPS[kindOf(lane)];
      // Without a vCPU nobody looks for the rows of guests.
      const kept = own.filter((step) => used.has(step) || (hasVcpus && !["L3", "unknown"].includes(step)));
      const steps = kept.length > 0 ? kept : own;
      const deep = !shares.has(kindOf(lane));
      const few = stairs.has(lane.id) && deep;
      const height =
        few || (deep && many)
          ? steps.length * within(STEP_HEIGHT, fair / steps.length)
          : isVcpu(lane) || !hasVcpus
            ? within(COVER_HEIGHT, fair)
            : SIDE_HEIGHT;
      const alone = !headed || key === PINNED || key === SORTED;
      out.lanes.push({ id: lane.id, top, height, steps: few ? steps : null, deep, alone });
      top += height + LANE_GAP;
    }
  }
  out.height = top;
  return out;
}

/** What of it lies between two heights: lanes, and groups whether open or folded. */
export function between(place: Layout, top: number, bottom: number): Layout {
  const inside = (it: { top: number; height: number }) => it.top < bottom && it.top + it.height > top;
  return { ...place, groups: place.groups.filter(inside), lanes: place.lanes.filter(inside) };
}

/** Air below what was brought into view, or above it. */
export const RIM = 8;

/** Where the box is scrolled to so that the lanes of a group are seen, or as many of them as fit below its name. */
export function revealed(
  group: GroupPlace,
  { lanes }: Layout,
  box: { scrolled: number; height: number },
): number {
  const ends = lanes.filter(({ id }) => group.lanes.includes(id)).map(({ top, height }) => top + height);
  const last = Math.max(group.top + group.height, ...ends) + RIM - box.height;
  return Math.max(box.scrolled, Math.min(last, group.top - AXIS_HEIGHT - RIM));
}

function within({ least, most }: { least: number; most: number }, height: number): number {
  return Math.round(Math.min(most, Math.max(least, height)));
}
