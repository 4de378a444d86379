import { describe, expect, it } from "vitest";
import { witnessed, witnesses } from "./witness";

describe("who recorded it", () => {
  const report = {
    recording: {
      machines: [
        { id: "host-a", level: 0, name: null },
        { id: "host-b", level: 0, name: null },
        { id: "inner", level: 1, name: null },
      ],
    },
  } as never;
  const rows = ["inner", "host-a", "inner", "host-b"].map((machine, at) => ({ machine, at }));
  const places = (found: { at: unknown }[]) => found.map(({ at }) => at);

  it("counts the same time once: as the outermost level saw it", () => {
    expect(witnesses(report, rows)).toEqual(["L0", "L1"]);
    expect(places(witnessed(report, rows))).toEqual([1, 3]);
  });

  it("shows what another level saw to whoever asks for it", () => {
    expect(places(witnessed(report, rows, "L1"))).toEqual([0, 2]);
    expect(places(witnessed(report, rows, "L7"))).toEqual([1, 3]);
  });

  it("takes the outermost that has any rows, not the outermost that there is", () => {
    const inner = rows.filter(({ machine }) => machine === "inner");
    expect(witnessed(report, inner)).toEqual(inner);
    expect(witnessed(report, [])).toEqual([]);
  });

  it("knows the level of a machine that the report does not list by its name", () => {
    const bare = { recording: {} } as never;
    expect(
      places(
        witnessed(bare, [
          { machine: "L1", at: 0 },
          { machine: "L0", at: 1 },
        ]),
      ),
    ).toEqual([1]);
  });
});
