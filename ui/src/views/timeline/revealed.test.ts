import { expect, test } from "vitest";
import { AXIS_HEIGHT, type GroupPlace, type Layout, revealed } from "./layout";

const group: GroupPlace = {
  key: "host CPUs",
  title: "host CPUs (4)",
  top: 300,
  height: 18,
  folded: false,
  mean: true,
  lanes: [4, 5, 6, 7],
};
const placed = (height: number): Layout => ({
  groups: [group],
  lanes: group.lanes.map((id, i) => {
    const top = 324 + i * (height + 10);
    return { id, top, height, steps: null, deep: false, alone: false };
  }),
  height: 324 + group.lanes.length * (height + 10),
});

test("lanes that were unfolded below the edge are scrolled into view, and no further", () => {
  const place = placed(34);
  const scrolled = revealed(group, place, { scrolled: 0, height: 280 });
  const last = place.lanes.at(-1)!;
  expect(last.top + last.height).toBeLessThanOrEqual(scrolled + 280);
  expect(group.top).toBeGreaterThanOrEqual(scrolled + AXIS_HEIGHT);
});

test("of more lanes than fit the group's name stays in view, and what is in view is not scrolled", () => {
  const scrolled = revealed(group, placed(200), { scrolled: 0, height: 280 });
  expect(group.top - scrolled).toBeGreaterThanOrEqual(AXIS_HEIGHT);
  expect(group.top - scrolled).toBeLessThan(AXIS_HEIGHT + 20);
  expect(revealed(group, placed(34), { scrolled: 0, height: 900 })).toBe(0);
});
