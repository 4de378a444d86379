import { expect, test } from "vitest";
import type { Report } from "../data/types";
import { emulation } from "./emulated";

const report = (emulated: string | null, hosts: (string | null)[]) =>
  ({
    recording: { path: "", emulated },
    sections: [
      {
        id: "fleet",
        tables: { hosts: { version: 1, columns: [{ name: "emulated" }], rows: hosts.map((by) => [by]) } },
      },
    ],
  }) as unknown as Report;

test("a data set says how many of its hosts were emulated", () => {
  expect(emulation(report(null, ["bochs", null, "bochs", "tcg"]))).toBe(
    "3 of 4 hosts emulated: times not real",
  );
  expect(emulation(report(null, [null, null]))).toBe("");
  expect(emulation(report("tcg", []))).toBe("Emulated (QEMU TCG): times are not real");
  expect(emulation(undefined)).toBe("");
});
