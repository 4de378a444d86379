import { expect, test } from "vitest";
import type { Cell } from "../data/types";
import { constants, spanOf } from "./rows";

test("a row lies on the timeline where its columns say so, and other times of it do not count", () => {
  expect(spanOf({ timeline_from_ns: 5, timeline_to_ns: 9 })).toEqual({ t0: 5, t1: 9 });
  expect(spanOf({ timeline_from_ns: 5, timeline_to_ns: 5 })).toBeNull();
  expect(spanOf({ timeline_from_ns: null, timeline_to_ns: 9 })).toBeNull();
  expect(spanOf({ from_ns: 5, to_ns: 9 })).toBeNull();
});

test("keys that are the same in all rows are said once, and what was measured never", () => {
  const column = (name: string, key: boolean) => ({ name, unit: "", type: "text", key });
  const columns = [column("path", true), column("side", true), column("vm", true), column("lost", false)];
  const names = (rows: Cell[][]) => constants({ columns, rows }).map(({ name }) => name);
  expect(
    names([
      ["ring", "a", null, 0],
      ["ring", "b", null, 0],
    ]),
  ).toEqual(["path"]);
  expect(names([["ring", "a", null, 0]])).toEqual([]);
});
