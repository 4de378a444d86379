import { expect, test } from "vitest";
import type { Slice, Timeline, Wake } from "../../data/types";
import { wakeLinks, wakeOf } from "./wakes";

const NAMES = ["halted", "wake_delay", "guest_l1", "running"];
const slice = (from_ns: number, to_ns: number, state: string): Slice => ({
  index: from_ns,
  from_ns,
  to_ns,
  state: NAMES.indexOf(state),
  detail: "",
});
const timeline = { states: NAMES.map((name) => ({ name, title: name })) } as Timeline;
const wake = (woken_ns: number, ran_ns: number, by: Wake["by"]): Wake => ({ woken_ns, ran_ns, cpu: 1, by });
const vhost = { kind: "task", name: "vhost-9 (12)", lane: 4 } as const;
const halted = [slice(0, 100, "halted"), slice(100, 130, "wake_delay"), slice(130, 200, "guest_l1")];

test("an arrow leads from the waker, where it ran, to the wait that it ended a sleep with", () => {
  const wakes = [wake(100, 130, vhost)];
  const stairs = new Map([
    [0, { slices: halted, left_out: 0, wakes }],
    [4, { slices: [slice(90, 110, "running")], left_out: 0, wakes: [] }],
  ]);
  expect(wakeLinks(timeline, stairs)).toEqual([
    {
      from: { lane: 4, ns: 100, state: "running" },
      to: { lane: 0, ns: 100, state: "wake_delay" },
      label: "woken by vhost-9 (12)",
      at: 0.75,
    },
  ]);
});

test("an interrupt, a task without a lane and somebody unknown are no end of an arrow", () => {
  const wakes = [
    wake(100, 130, { kind: "interrupt", name: "irq 24 nvme0q1", lane: null }),
    wake(140, 150, { kind: "task", name: "bash (7)", lane: null }),
    wake(160, 170, null),
  ];
  expect(wakeLinks(timeline, new Map([[0, { slices: halted, left_out: 0, wakes }]]))).toEqual([]);
  expect(wakeLinks(timeline, new Map([[0, { slices: halted, left_out: 0 }]]))).toEqual([]);
});

test("the wait and what comes first after it are about the wake-up, the sleep before it is not", () => {
  const wakes = [wake(100, 130, vhost)];
  expect(halted.map((one) => wakeOf(one, wakes) === wakes[0])).toEqual([false, true, true]);
  expect(wakeOf(halted[1]!, undefined)).toBeNull();
});
