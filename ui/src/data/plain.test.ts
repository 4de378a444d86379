import { describe, expect, it } from "vitest";
import { plain } from "./plain";

describe("text of traced machines", () => {
  it("reverses and hides nothing", () => {
    expect(plain("\u202elive-3402\u200b \u2066x\ufeff")).toBe("\ufffdlive-3402\ufffd \ufffdx\ufffd");
    expect(plain("é 日本 עברית")).toBe("é 日本 עברית");
  });
});
