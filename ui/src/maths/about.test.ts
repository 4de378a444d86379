import { describe, expect, it } from "vitest";
import type { TableName } from "../data/tables";
import type { About, Cell, Finding, Report } from "../data/types";
import { aboutOf, addressOf, filterOf, findingFor, hasInstant, reasonsOf, rowsAbout } from "./about";
import { matches } from "./rows";

const rows = (table: TableName, keys: Record<string, Cell> = {}): About => ({ kind: "rows", table, keys });
const reason = (name: string): About => ({ kind: "reason", reason: name });
const finding = (id: string, subject: string, about: About[]) =>
  ({
    id,
    subject,
    title: "VMREAD pre-empted",
    evidence: [{ what: "HLT", where: "table x", about }],
  }) as Finding;
const report = {
  sections: [
    {
      id: "flow",
      findings: [
        finding("timer", "L0", [rows("flow.exit_details", { vm: "web" }), reason("MSR")]),
        finding("shadow", "db", [rows("flow.chains"), reason("VMREAD"), reason("VMWRITE"), reason("VMREAD")]),
      ],
    },
  ],
} as unknown as Report;

describe("what a finding is about", () => {
  it("comes from data, each name once, and from no word of its sentences", () => {
    const [timer, shadow] = report.sections[0]!.findings;
    expect(reasonsOf(aboutOf(shadow!))).toEqual(["VMREAD", "VMWRITE"]);
    expect(reasonsOf(aboutOf(timer!))).toEqual(["MSR"]);
  });

  it("leads from a reason of a VM to the finding about it", () => {
    expect(findingFor(report, "db", "VMWRITE")?.id).toBe("shadow");
    expect(findingFor(report, "web", "MSR")?.id).toBe("timer");
    expect(findingFor(report, "db", "HLT")).toBeUndefined();
    expect(findingFor(report, "web", "VMREAD")).toBeUndefined();
  });

  it("leads to the view of its table, or to the table by its section", () => {
    const exits = rowsAbout([reason("MSR"), rows("flow.exits", { level: "L1", reason: "MSR" })])!;
    expect(addressOf(exits)).toEqual({ view: "exits", q: "level:L1 reason:MSR", by: "" });
    const inner = rowsAbout([rows("flow.exits", { vm: "L1/web" })])!;
    expect(addressOf(inner)).toEqual({ view: "exits", q: "vm:L1/web", by: "L1" });
    expect(addressOf(rowsAbout([rows("placement.threads")])!)).toEqual({
      view: "sections",
      table: "placement.threads",
      q: "",
    });
  });

  it("filters the rows with its keys and no others", () => {
    const keys = { vm: "L0:my vm", vcpu: 1, by_tid: 42 };
    const filter = filterOf({ ...keys, kind: "lost:packets" });
    expect(matches({ ...keys, kind: "lost:packets" }, filter)).toBe(true);
    expect(matches({ ...keys, vcpu: 10, kind: "lost:packets" }, filter)).toBe(false);
    expect(matches({ ...keys, kind: "lost" }, filter)).toBe(false);
  });

  it("can be seen on a timeline unless it is rows or a thread alone", () => {
    expect(hasInstant([rows("flow.vms"), { kind: "thread", tid: 7 }])).toBe(false);
    expect(hasInstant([rows("flow.vms"), { kind: "state", state: "preempted" }])).toBe(true);
  });
});
