/** Which lanes are shown and in which order: `lanes=words`, `pin=3,7` and `order=preempted` of the address. */
import { useMemo } from "preact/hooks";
import { lanesOf } from "../../data/lanes";
import type { Recording } from "../../data/source";
import type { Timeline } from "../../data/types";
import { number, rowsOf, tableOf, text } from "../../maths/rows";
import { go, hash } from "../../state/store";
import { useAnswer } from "../useAnswer";
import type { Order } from "./layout";

/** Lanes by the time that they spent in some states, or by a count. */
export const ORDERS = [
  { id: "preempted", title: "Most preempted first", states: /^(preempted|runnable)$/ },
  { id: "l0", title: "Most L0 time first", states: /^(handling_(?!.*_by_)|irq|softirq|nmi)/ },
  { id: "exits", title: "Most exits first", states: null },
  { id: "chains", title: "Most chains first", states: null },
] as const;

export function pinned(): number[] {
  return lanesOf(hash.value.pin ?? "");
}

export function turnPin(lane: number): void {
  const all = pinned();
  const next = all.includes(lane) ? all.filter((id) => id !== lane) : [...all, lane];
  go({ pin: next.join(",") });
}

/** What each lane is sorted by. */
async function keysOf(recording: Recording, timeline: Timeline, id: string): Promise<Map<number, number>> {
  const wanted = ORDERS.find((order) => order.id === id);
  const { lanes, span, states } = timeline;
  if (wanted?.id === "exits") {
    const exits = new Map<string, number>();
    for (const row of rowsOf(tableOf(recording.report, "flow.exits"))) {
      const key = `${text(row, "vm")}/vCPU ${text(row, "vcpu")}`;
      exits.set(key, (exits.get(key) ?? 0) + number(row, "count"));
    }
    return new Map(lanes.map((lane) => [lane.id, exits.get(`${lane.group}/${lane.title}`) ?? 0]));
  }
  const chains = new Map(lanes.map((lane) => [lane.id, lane.chains]));
  if (!wanted?.states) return chains;
  const sums = (time: ArrayLike<number>, from = 0) =>
    states.reduce((sum, state, s) => sum + (wanted.states.test(state.name) ? time[from + s]! : 0), 0);
  const ids = lanes.map((lane) => lane.id);
  const exact = await recording.states(ids, span.from_ns, span.to_ns);
  if (exact) return new Map([...exact].map(([lane, time]) => [lane, sums(time)]));
  const tile = await recording.tile(span.from_ns, span.to_ns, 1, { lanes: ids, means: [] });
  return new Map(tile.lanes.map(({ lane, cover }) => [lane, sums(cover)]));
}

export function useOrder(recording: Recording, timeline: Timeline): Order {
  const id = hash.value.order ?? "";
  const { value: keys } = useAnswer(
    () => (id ? keysOf(recording, timeline, id) : Promise.resolve(null)),
    [recording, id],
  );
  const filter = hash.value.lanes ?? "";
  const pins = hash.value.pin ?? "";
  return useMemo(() => {
    const title = ORDERS.find((order) => order.id === id)?.title;
    const sorted =
      keys && title
        ? { ids: [...keys].sort(([a, x], [b, y]) => y - x || a - b).map(([lane]) => lane), title }
        : null;
    return { filter: filter.trim(), pinned: lanesOf(pins), sorted };
  }, [keys, id, filter, pins]);
}
