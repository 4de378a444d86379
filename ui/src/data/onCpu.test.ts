import { expect, test } from "vitest";
import { laneOfCpu, onCpu } from "./onCpu";
import { placeOfRow } from "./place";
import type { Recording } from "./source";
import type { LaneKind, Slice, Timeline } from "./types";

const lane = (id: number, kind: LaneKind, group: string, title: string) => ({
  id,
  kind,
  group,
  title,
  tid: null,
  slices: 1,
  chains: 0,
});

const timelineOf = (...lanes: ReturnType<typeof lane>[]) => ({ lanes, states: [] }) as unknown as Timeline;

test("a CPU is that of its machine, and the host is whichever machine is alone", () => {
  const one = timelineOf(lane(0, "cpu", "host CPUs", "CPU 0"), lane(1, "cpu", "host CPUs", "CPU 1"));
  expect(laneOfCpu(one, "L1", 1)).toBe(1);
  expect(laneOfCpu(one, "L1", 7)).toBeNull();
  const both = timelineOf(
    lane(0, "cpu", "host CPUs", "CPU 0"),
    lane(1, "cpu", "host CPUs", "CPU 1"),
    lane(2, "guest_vcpu", "L1 (own trace)", "CPU 0"),
    lane(3, "guest_cpu", "L1 (own trace)", "CPU 0"),
  );
  expect([laneOfCpu(both, "L0", 0), laneOfCpu(both, "L1", 0)]).toEqual([0, 3]);
  // A CPU of which the guest's trace has nothing is not the host's of that number.
  expect(laneOfCpu(both, "L1", 1)).toBeNull();
});

test("a row is seen where it lies, with what had its CPU for longest inside of it", async () => {
  const slice = (index: number, from_ns: number, to_ns: number, detail: string): Slice => ({
    index,
    from_ns,
    to_ns,
    state: 0,
    detail,
  });
  const slices = [slice(0, 0, 1_010, "recv"), slice(1, 1_010, 1_080, "hog"), slice(2, 1_080, 9_000, "recv")];
  const recording: Recording = {
    timeline: timelineOf(lane(0, "cpu", "host CPUs", "CPU 0")),
    slices: async () => new Map([[0, { slices, left_out: 0 }]]),
    search: async () => ({ before: null, after: { lane: 0 } }),
    onCpu: async (window, who) => onCpu(recording, window, who),
  } as unknown as Recording;
  const row = { machine: "L0", cpu: 0, timeline_from_ns: 1_000, timeline_to_ns: 1_100 };
  expect(await placeOfRow(recording, row)).toMatchObject({
    t0: 1_000,
    t1: 1_100,
    pick: { lane: 0, ns: 1_010 },
  });
  const { cpu, ...without } = row;
  expect(await placeOfRow(recording, without)).not.toHaveProperty("pick");
  expect(await placeOfRow(recording, { machine: "L0", cpu })).toBeNull();
  expect(await onCpu(recording, { t0: 1_000, t1: 1_100 }, { threads: [7] })).toEqual({ lane: 0, ns: 1_010 });
});
