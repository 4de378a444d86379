import { describe, expect, it } from "vitest";
import { colourOf, lookOf, STATE_NAMES, type Theme } from "./tokens";
import { difference, seen, VISIONS } from "./vision";

/** Below this two colours need another cue. Just noticeable is about 2.3; small areas side by side need several times that. */
const APART = 12;

const LEDGER = STATE_NAMES.filter((name) => !/_by_|^(running|runnable|sleeping|task|idle)$/.test(name));
const OFF = /^(halted|preempted|wake_delay|blocked)$/;
/** The states that one lane can have, by kind: any two of them can lie side by side. */
const LANES = {
  vcpu: LEDGER,
  cpu: [...LEDGER.filter((name) => !OFF.test(name)), "task", "idle"],
  thread: ["running", "runnable", "sleeping", "unknown"],
  guest: [
    ...STATE_NAMES.filter((name) => name.includes("_by_")),
    ...LEDGER.filter((name) => !name.startsWith("handling")),
  ],
};

function pairs(): [string, string][] {
  return Object.values(LANES).flatMap((names) =>
    names.flatMap((a, i) => names.slice(i + 1).map((b): [string, string] => [a, b])),
  );
}

function alike(theme: Theme): string[] {
  return pairs().flatMap(([a, b]) => {
    if (lookOf(a).pattern !== lookOf(b).pattern) return [];
    return VISIONS.filter((vision) => difference(colourOf(a, theme), colourOf(b, theme), vision) < APART).map(
      (vision) => `${a} and ${b} (${vision})`,
    );
  });
}

/** What one column of pixels shows has no room for a pattern: these hold without one, in every kind of colour vision. */
const WITHOUT_PATTERN = { light: 8.2, dark: 5.9 };
const COLOURED = VISIONS.filter((vision) => vision !== "greyscale");

function nearest(theme: Theme, all: [string, string][]): [number, string] {
  const found = all
    .filter(([a, b]) => colourOf(a, theme) !== colourOf(b, theme))
    .flatMap(([a, b]) =>
      COLOURED.map((vision): [number, string] => [
        difference(colourOf(a, theme), colourOf(b, theme), vision),
        `${a} and ${b} (${vision})`,
      ]),
    );
  return found.reduce((least, it) => (it[0] < least[0] ? it : least));
}

describe("colours of states", () => {
  it("are computed as others compute them", () => {
    // sRGB white, black, and red, after Lindbloom's calculator.
    expect(seen("#ffffff", "normal")[0]).toBeCloseTo(100, 1);
    expect(seen("#000000", "normal")[0]).toBeCloseTo(0, 6);
    const red = seen("#ff0000", "normal");
    expect([red[0], red[1], red[2]].map((it) => Math.round(it))).toEqual([53, 80, 67]);
    expect(difference("#ff0000", "#00ff00", "normal")).toBeGreaterThan(100);
  });

  for (const theme of ["light", "dark"] as const) {
    it(`tell states apart in ${theme}, by pattern wherever hue or brightness does not`, () => {
      expect(alike(theme).join("\n")).toBe("");
    });

    it(`keep blocked apart from every state of a vCPU and from other tasks in ${theme} by its grey alone`, () => {
      const others = [...LEDGER, "task"].filter((name) => name !== "blocked");
      const [least, which] = nearest(
        theme,
        others.map((name): [string, string] => ["blocked", name]),
      );
      expect(least, which).toBeGreaterThan(APART);
    });

    it(`keep interrupts apart from KVM's work, and what threads run from the VMM, in ${theme} by colour alone`, () => {
      const [least, which] = nearest(theme, [
        ["handling_l1", "irq"],
        ["running", "userspace"],
      ]);
      expect(least, which).toBeGreaterThan(APART);
    });

    it(`are nowhere nearer to each other than they were in ${theme}`, () => {
      const inLanes = LANES.vcpu.flatMap((a, i) =>
        LANES.vcpu.slice(i + 1).map((b): [string, string] => [a, b]),
      );
      const [least, which] = nearest(theme, inLanes);
      expect(least, which).toBeGreaterThan(WITHOUT_PATTERN[theme]);
    });
  }
});
