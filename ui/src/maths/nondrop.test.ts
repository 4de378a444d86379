import { describe, expect, it } from "vitest";
import type { Report } from "../data/types";
import { lacksNonDrop, nonDrop } from "./nondrop";

const BOUNDS = ["design", "vnfs", "size_bytes", "goal", "lower_pps", "upper_pps", "ended"];

function report(bounds: unknown[][], kind: string): Report {
  const table = (names: string[], rows: unknown[][]) => ({ columns: names.map((name) => ({ name })), rows });
  const tables = { bounds: table(BOUNDS, bounds), rates: table(["kind"], [[kind]]) };
  return { sections: [{ id: "datapath", tables }] } as unknown as Report;
}

describe("the rate without loss", () => {
  it("is that of the chain that held most, with what bounds it", () => {
    const found = report(
      [
        ["ovs", 2, 64, "ndr", 69_262, 69_610, "both bounds were found"],
        ["ovs", 1, 64, "ndr", 1_205_860, 1_211_920, "both bounds were found"],
        ["ovs", 1, 64, "pdr", 9_000_000, null, "no upper bound"],
      ],
      "measured",
    );
    expect(nonDrop(found)).toEqual({
      much: "1.21 Mpps",
      interval: "no loss at 1,205,860, loss at 1,211,920 packets a second",
      chain: "ovs, 1 VNF, 64 bytes",
      others: "1 more chain in table bounds of All numbers.",
    });
    expect(lacksNonDrop(found)).toBe(false);
  });

  it("has no upper bound where none was found, and is unknown where nobody searched", () => {
    const open = report(
      [["veth", 1, 64, "ndr", 1_510_923, null, "the sender cannot offer more"]],
      "measured",
    );
    expect(nonDrop(open)).toMatchObject({
      much: "at least 1.51 Mpps",
      interval: "the sender cannot offer more",
      others: "",
    });
    const none = report([["veth", 1, 64, "ndr", null, null, "disturbed"]], "measured");
    expect([nonDrop(none), lacksNonDrop(none)]).toEqual([null, true]);
    expect(lacksNonDrop(report([], "modelled"))).toBe(false);
  });
});
