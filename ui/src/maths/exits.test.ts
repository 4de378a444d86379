import { expect, test } from "vitest";
import { mostExpensive } from "./exits";

test("the most expensive reason is that of all vCPUs together, not the longest row", () => {
  const row = (level: string, reason: string, total_ns: number) => ({ level, reason, count: 2, total_ns });
  const rows = [row("L2", "MSR", 230), row("L1", "MSR", 200), row("L1", "HLT", 168), row("L1", "MSR", 173)];
  const { most, total_ns, exits } = mostExpensive(rows);
  expect(most).toEqual({ level: "L1", reason: "MSR", total_ns: 373 });
  expect([total_ns, exits]).toEqual([771, 8]);
  expect(mostExpensive([]).most).toBeNull();
});
