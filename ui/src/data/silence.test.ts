import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answering, returned, silent } from "./silence";

describe("a server that goes away", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("is silent until it answers again, and is asked for that long without anybody's doing", async () => {
    const fetched = vi.fn(() => Promise.reject(new TypeError("Failed to fetch")) as Promise<unknown>);
    vi.stubGlobal("fetch", fetched);
    const before = returned.value;
    expect(await answering()).toBe(false);
    expect(silent.value).toBe(true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(fetched.mock.calls.length).toBeGreaterThan(3);
    expect([silent.value, returned.value]).toEqual([true, before]);
    fetched.mockImplementation(() => Promise.resolve({}));
    await vi.advanceTimersByTimeAsync(10_000);
    expect([silent.value, returned.value]).toEqual([false, before + 1]);
    const asked = fetched.mock.calls.length;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(fetched.mock.calls.length).toBe(asked);
  });

  it("is not silent for one request that failed, so that nothing is asked for again and again", async () => {
    vi.stubGlobal(
      "fetch",
      vi.fn(() => Promise.resolve({})),
    );
    const before = returned.value;
    expect(await Promise.all([answering(), answering()])).toEqual([true, true]);
    expect(fetch).toHaveBeenCalledTimes(1);
    expect([silent.value, returned.value]).toEqual([false, before]);
  });
});
