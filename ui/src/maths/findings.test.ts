import { describe, expect, it } from "vitest";
import type { Finding, Report } from "../data/types";
import { answerOf, byCause, findingsOf } from "./findings";

const finding = (id: string, rank: number, explains: string[] = []) => ({ id, rank, explains }) as Finding;
const shown = (findings: Finding[]) =>
  byCause(findings).map(({ finding, explained }) => [finding.id, ...explained.map(({ id }) => id)]);

describe("the list of findings", () => {
  it("has those of all sections in the order of the program", () => {
    const report = {
      sections: [
        { findings: [finding("preempted", 2), finding("timer", 4)] },
        { findings: [finding("overcommit", 1), finding("core", 3)] },
      ],
    } as Report;
    expect(findingsOf(report).map(({ id }) => id)).toEqual(["overcommit", "preempted", "core", "timer"]);
  });

  it("has below a cause what it explains, also by way of others, and each finding once", () => {
    const findings = [
      finding("overcommit", 1, ["starved"]),
      finding("other", 2, ["starved"]),
      finding("starved", 3, ["slow", "gone"]),
      finding("slow", 4),
    ];
    expect(shown(findings)).toEqual([["overcommit", "starved", "slow"], ["other"]]);
  });

  it("ends where findings explain each other", () => {
    expect(shown([finding("a", 1, ["b", "a"]), finding("b", 2, ["a"])])).toEqual([["a", "b"]]);
  });
});

describe("the answer of a summary", () => {
  it("is its first sentence, whatever points there are in numbers and names", () => {
    const summary =
      "A chain of 1 VNF carried 1.96 Mpps, e.g. on ovs; the VNFs bound it (L0/samples/a.csv). It had 2 rings.\n\nBelow 0.5 s.";
    expect(answerOf(summary)).toEqual({
      first: "A chain of 1 VNF carried 1.96 Mpps, e.g. on ovs; the VNFs bound it (L0/samples/a.csv).",
      rest: ["It had 2 rings.", "Below 0.5 s."],
    });
  });

  it("keeps all that is said", () => {
    for (const summary of ["One.", "One. Two. Three.", "One\n\nTwo. Three.", ""]) {
      const { first, rest } = answerOf(summary);
      expect([first, ...rest].join(" ")).toBe(summary.replace(/\n\n/g, " "));
    }
  });
});
