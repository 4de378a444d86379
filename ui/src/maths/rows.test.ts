import { expect, test } from "vitest";
import { spanOf } from "./rows";

test("a row lies on the timeline where its columns say so, and other times of it do not count", () => {
  expect(spanOf({ timeline_from_ns: 5, timeline_to_ns: 9 })).toEqual({ t0: 5, t1: 9 });
  expect(spanOf({ timeline_from_ns: 5, timeline_to_ns: 5 })).toBeNull();
  expect(spanOf({ timeline_from_ns: null, timeline_to_ns: 9 })).toBeNull();
  expect(spanOf({ from_ns: 5, to_ns: 9 })).toBeNull();
});
