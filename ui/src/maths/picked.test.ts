import { expect, test } from "vitest";
import { areaOf, pickOf } from "./picked";

test("a slice and an area come out of the address, and what is none does not", () => {
  expect(pickOf({ pick: "3.1200345" })).toEqual({ lane: 3, ns: 1_200_345 });
  expect(pickOf({ pick: "3" })).toBeNull();
  expect(areaOf({ area: "1000.2000.0-2,7" })).toEqual({
    window: { t0: 1000, t1: 2000 },
    lanes: [0, 1, 2, 7],
  });
  for (const area of ["2000.1000.0", "1000.2000.", "x.2000.0", ""]) expect(areaOf({ area })).toBeNull();
});
