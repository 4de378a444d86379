import { expect, test } from "vitest";
import { laneAt, lanesOfRow } from "./cpus";
import type { Recording } from "./source";
import type { LaneKind, Timeline } from "./types";

const lane = (id: number, kind: LaneKind, group: string, title: string, tid: number | null = null) => ({
  id,
  kind,
  group,
  title,
  tid,
  slices: 1,
  chains: 0,
});

const timelineOf = (...lanes: ReturnType<typeof lane>[]) => ({ lanes, states: [] }) as unknown as Timeline;

test("a row has the lane of its CPU, those of all CPUs of its machine where it names none, and never another machine's", () => {
  const one = timelineOf(lane(0, "cpu", "host CPUs", "CPU 0"), lane(1, "cpu", "host CPUs", "CPU 1"));
  expect(lanesOfRow(one, { machine: "L1", cpu: 1 })).toEqual([1]);
  expect(lanesOfRow(one, { machine: "L1" })).toEqual([0, 1]);
  const both = timelineOf(
    lane(0, "cpu", "host CPUs", "CPU 0"),
    lane(1, "cpu", "host CPUs", "CPU 1"),
    lane(2, "guest_vcpu", "L1 (own trace)", "CPU 0"),
    lane(3, "guest_cpu", "L1 (own trace)", "CPU 0"),
  );
  expect(lanesOfRow(both, { machine: "L0", cpu: 0 })).toEqual([0]);
  expect(lanesOfRow(both, { machine: "L1", cpu: 0 })).toEqual([3]);
  expect(lanesOfRow(both, { machine: "L1", cpu: 1 })).toEqual([3]);
});

test("a thread has its lane, or that of the CPU that it had last", async () => {
  const timeline = timelineOf(lane(4, "cpu", "host CPUs", "CPU 0"), lane(5, "vhost", "host threads", "", 7));
  let asked = "";
  const recording = {
    timeline,
    search: async ({ q, lanes }: { q: string; lanes: number[] }) => {
      asked = `${q} ${lanes}`;
      return { before: { lane: 4 }, after: { lane: 9 } };
    },
  } as unknown as Recording;
  expect([await laneAt(recording, 1, [7]), asked]).toEqual([5, ""]);
  expect([await laneAt(recording, 1, [8]), asked]).toEqual([4, "(8) 4"]);
  expect(await laneAt(recording, 1, [])).toBeNull();
});
