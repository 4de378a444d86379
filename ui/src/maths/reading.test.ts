import { expect, test } from "vitest";
import { readingWords, shareOf } from "./reading";

test("a recording that is read for long says how far it is, or at least for how long", () => {
  const progress = { read_bytes: 40e6, of_bytes: 160e6, pass: 1 };
  expect(readingWords("big", 160e6, 400, progress)).toBe("Reading big …");
  expect(readingWords("big", 160e6, 1400, progress)).toBe("Reading big: 25 % of 160 MB …");
  expect(readingWords("big", 160e6, 1400, { ...progress, pass: 2 })).toBe(
    "Reading big: 25 % of 160 MB, pass 2 …",
  );
  expect(readingWords("big", 160e6, 1400, { ...progress, of_bytes: 320e6 })).toBe(
    "Reading big: 12 % of 160 MB …",
  );
  expect(readingWords("big", 160e6, 3400, { read_bytes: 0, of_bytes: 0, pass: 0 })).toBe(
    "Reading big, 160 MB, for 3 s …",
  );
  expect(readingWords("big", 0, 3400, null)).toBe("Reading big, for 3 s …");
  expect(shareOf({ read_bytes: 0, of_bytes: 0, pass: 2 })).toBe(null);
});
