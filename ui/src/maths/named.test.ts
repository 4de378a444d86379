import { describe, expect, it } from "vitest";
import type { Finding, Report } from "../data/types";
import { findingFor, reasonsIn, statesIn } from "./named";

const column = (name: string) => ({ name, unit: "", type: "text", key: false });
const finding = (id: string, subject: string, title: string, what: string) =>
  ({ id, rule: "", subject, title, evidence: [{ what, where: "table exits" }] }) as Finding;
const report = {
  sections: [
    {
      id: "flow",
      tables: {
        exits: { columns: [column("reason")], rows: [["VMREAD"], ["MSR"], ["HLT"]] },
        exit_details: { columns: [column("reason"), column("detail")], rows: [["MSR", "TSC_DEADLINE"]] },
      },
      findings: [
        finding("timer", "vm", "The guest arms timers", "9 writes of TSC_DEADLINE"),
        finding("shadow", "vm", "VMREAD is 40 % of all exits", "0 of VMWRITE"),
      ],
    },
  ],
} as unknown as Report;

describe("the words of a finding", () => {
  it("name reasons, by themselves or by a detail", () => {
    expect(reasonsIn("1,800 VMREAD exits, TSC_DEADLINE twice, no VMWRITE, of L1", report)).toEqual([
      "VMREAD",
      "MSR",
    ]);
    expect(reasonsIn("nothing of that kind", report)).toEqual([]);
  });

  it("name states by their stems", () => {
    const states = ["guest_l1", "preempted", "halt_poll", "userspace"].map((name) => ({ name, title: name }));
    expect(statesIn("vCPU 0 was preempted 12 times", states)).toEqual(["preempted"]);
    expect(statesIn("halt-polling took 3 %", states)).toEqual(["halt_poll"]);
    expect(statesIn("9 of 10 exits went to the VMM", states)).toEqual(["userspace"]);
    expect(statesIn("VMREAD", states)).toEqual([]);
  });

  it("lead from a reason to the finding that removes it", () => {
    expect(findingFor(report, "vm", "MSR")?.id).toBe("timer");
    expect(findingFor(report, "vm", "VMREAD")?.id).toBe("shadow");
    expect(findingFor(report, "vm", "HLT")).toBeUndefined();
    expect(findingFor(report, "another", "MSR")).toBeUndefined();
  });
});
