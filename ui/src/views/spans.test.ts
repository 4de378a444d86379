import { expect, test } from "vitest";
import { wrapped } from "../draw/frame";
import { wideOf } from "../draw/words";
import { placesOf } from "./Spans";

test("notes keep within the picture, names of rules in capitals too", () => {
  for (const note of ["FLW-PREEMPT, FLW-SHADOW", "polling threads waited for CPUs", "CHN-PREEMPTED"]) {
    const width = 607;
    const { at, long, letters } = placesOf(
      [{ label: "nested-vmx-shadow-off-hog", value: "46.4 %", note }],
      width,
    );
    const lines = wrapped(note, letters);
    expect(lines.length, note).toBeLessThan(3);
    for (const line of lines) expect(at + long + 16 + wideOf(line, 11), line).toBeLessThanOrEqual(width + 1);
  }
});
