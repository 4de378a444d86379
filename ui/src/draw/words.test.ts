import { describe, expect, it } from "vitest";
import { elided, squeezed, wideOf } from "./words";

describe("words that have to fit", () => {
  it("stay whole where there is room, and are cut where there is none", () => {
    expect(elided("EPT_VIOLATION", 200)).toBe("EPT_VIOLATION");
    const cut = elided("EPT_VIOLATION", 60);
    expect(cut).toMatch(/^EPT.*…$/);
    expect(wideOf(cut)).toBeLessThanOrEqual(60);
    expect(elided("EPT_VIOLATION", 20)).toBe("");
  });

  it("keep both ends of a name", () => {
    const name = "L1/qemu-system-x86-169 vCPU 0";
    const shown = squeezed(name, 140);
    expect(shown).toMatch(/^L1\/.+….+vCPU 0$/);
    expect(wideOf(shown)).toBeLessThanOrEqual(140);
    expect(squeezed("web", 140)).toBe("web");
  });
});
