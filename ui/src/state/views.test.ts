import { expect, test } from "vitest";
import type { Recording } from "../data/source";
import { isView } from "./views";

test("a view that an address names is one that can be open: of this recording, and compared with a second one only", () => {
  const section = { id: "nesting", figures: [{}], tables: {} };
  const recording = { timeline: null, report: { sections: [section] } } as unknown as Recording;
  const open = (id: string, compared = false) => isView(recording, id, compared);
  // One that has nothing to show says so itself.
  expect(["findings", "chains", "of-nesting", "sections"].map((id) => open(id))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(["zzz", "of-latency", "compared"].map((id) => open(id))).toEqual([false, false, false]);
  expect(open("compared", true)).toBe(true);
});
