import { describe, expect, it } from "vitest";
import { numberOf, parseHash, patched, printHash } from "./hash";

describe("the address", () => {
  it("comes back as it was written, unknown keys too", () => {
    const hash = { r: "a/b c#d", view: "timeline", t0: "0", t1: "123456789012", later: "ü&=" };
    expect(parseHash(printHash(hash))).toEqual(hash);
  });

  it("loses what a patch empties and nothing else", () => {
    expect(patched({ r: "x", q: "msr", keep: "1" }, { q: null, t0: 5 })).toEqual({
      r: "x",
      keep: "1",
      t0: "5",
    });
    expect(printHash({})).toBe("");
  });

  it("holds numbers only where they are numbers", () => {
    expect(numberOf({ t0: "12" }, "t0")).toBe(12);
    expect(numberOf({ t0: "later" }, "t0")).toBeNull();
    expect(numberOf({}, "t0")).toBeNull();
  });
});
