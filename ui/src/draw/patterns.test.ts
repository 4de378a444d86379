import { afterEach, describe, expect, it, vi } from "vitest";
import { canvasFill } from "./patterns";

afterEach(() => vi.unstubAllGlobals());

describe("canvas fills", () => {
  it("are made once for a state, however many slices are drawn in it", () => {
    let canvases = 0;
    const context = new Proxy({}, { get: () => () => undefined, set: () => true });
    vi.stubGlobal(
      "OffscreenCanvas",
      class {
        constructor() {
          canvases++;
        }
        getContext() {
          return context;
        }
      },
    );
    vi.stubGlobal("Path2D", class {});
    vi.stubGlobal(
      "DOMMatrix",
      class {
        scale() {
          return this;
        }
      },
    );
    const on = { createPattern: () => ({ setTransform: () => undefined }) } as never;
    for (let slice = 0; slice < 1000; slice++)
      canvasFill(on, slice % 2 ? "guest_l1" : "guest_l2", "light", 1);
    canvasFill(on, "guest_l1", "dark", 1);
    expect(canvases).toBe(3);
  });
});
