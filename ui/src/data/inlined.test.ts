import { describe, expect, it } from "vitest";
import { bytesOfBase64, selectChains } from "./inlined";
import type { ChainInFull } from "./types";

const chain = (id: number, reason: string, from_ns: number, cost_ns: number | null) =>
  ({ id, lane: 0, reason, from_ns, to_ns: from_ns + 10, exits: id, cost_ns }) as ChainInFull;

describe("chains of a report file", () => {
  const all = [chain(0, "MSR", 0, 5), chain(1, "HLT", 20, null), chain(2, "MSR", 40, 9)];

  it("answer the server's query", () => {
    expect(selectChains(all, { sort: "cost", descending: true }).chains.map((it) => it.id)).toEqual([
      2, 0, 1,
    ]);
    expect(selectChains(all, { reason: "MSR", limit: 1 })).toMatchObject({ total: 2, chains: [{ id: 0 }] });
    expect(selectChains(all, { t0: 25, t1: 26 }).chains.map((it) => it.id)).toEqual([1]);
  });

  it("come from base64 byte by byte", () => {
    expect([...bytesOfBase64(" AP+A\n")]).toEqual([0, 255, 128]);
  });
});
