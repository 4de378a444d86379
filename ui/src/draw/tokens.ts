/**
 * All colours, light and dark, in one table. In pictures hue means level and nothing else; everything that is not a level is
 * grey. How severe a finding is has a colour beside its shape and its word, those of the static page.
 *
 * Hues are near the Okabe-Ito set, which keeps apart under the common colour-vision deficiencies, with lightnesses that
 * differ on paper; each state also has a pattern (patterns.ts). vision.test.ts checks both.
 */
import type { PatternName } from "./patterns";

export type Theme = "light" | "dark";

/** Name, light, dark. The page takes them as `--name`. */
const PAGE: [string, string, string][] = [
  ["page", "#ffffff", "#15171a"],
  ["panel", "#f5f5f3", "#1d2024"],
  ["raised", "#ffffff", "#24282d"],
  ["ink", "#191b1e", "#eceef0"],
  ["soft", "#53585e", "#a9b0b7"],
  ["line", "#dcdcd7", "#353a40"],
  ["grid", "#ebebe7", "#292d32"],
  ["strong", "#191b1e", "#f2f3f4"],
  ["on-strong", "#ffffff", "#15171a"],
  ["high", "#b3261e", "#ff8a80"],
  ["medium", "#9a5b00", "#f2b35c"],
  ["low", "#1f6f8b", "#76c7e0"],
  ["info", "#5c6670", "#9aa4ad"],
  ["ramp-0", "#ffffff", "#15171a"],
  ["ramp-1", "#191b1e", "#f2f3f4"],
];

export interface StateLook {
  light: string;
  dark: string;
  pattern: PatternName;
  /** Place in a stack, from the top: the deeper the level, the higher. */
  rank: number;
  /** Row of the staircase. */
  step: Step;
}

export type Step = "L3" | "L2" | "L1" | "L0" | "VMM" | "task" | "off CPU" | "unknown";

const LOOKS: Record<string, StateLook> = {
  guest_l3: { light: "#56b4e9", dark: "#7cc8f2", pattern: "plus", rank: 0, step: "L3" },
  guest_l2: { light: "#009e73", dark: "#17a67d", pattern: "solid", rank: 1, step: "L2" },
  guest_l1: { light: "#00609a", dark: "#2578b5", pattern: "solid", rank: 2, step: "L1" },
  handling_l2_by_l1: { light: "#00609a", dark: "#2578b5", pattern: "lines", rank: 2.3, step: "L1" },
  handling_unknown_level_by_l1: {
    light: "#00609a",
    dark: "#2578b5",
    pattern: "grid",
    rank: 2.6,
    step: "L1",
  },
  guest_unknown_level: { light: "#6f8795", dark: "#8aa3b2", pattern: "cross", rank: 3, step: "L1" },
  handling_l3: { light: "#d55e00", dark: "#ee7d2b", pattern: "bricks", rank: 4, step: "L0" },
  handling_l2: { light: "#d55e00", dark: "#ee7d2b", pattern: "lines", rank: 5, step: "L0" },
  handling_l1: { light: "#e69f00", dark: "#f0b430", pattern: "solid", rank: 6, step: "L0" },
  handling_unknown_level: { light: "#b98a3c", dark: "#c99c52", pattern: "grid", rank: 7, step: "L0" },
  irq: { light: "#e6de3c", dark: "#f4ee7c", pattern: "bars", rank: 8, step: "L0" },
  softirq: { light: "#e6de3c", dark: "#f4ee7c", pattern: "dots", rank: 9, step: "L0" },
  nmi: { light: "#e6de3c", dark: "#f4ee7c", pattern: "cross", rank: 10, step: "L0" },
  userspace: { light: "#cc79a7", dark: "#dc92bb", pattern: "dots", rank: 11, step: "VMM" },
  running: { light: "#6e6e69", dark: "#b8c2b0", pattern: "solid", rank: 11.3, step: "task" },
  task: { light: "#9a9a95", dark: "#7d848b", pattern: "bars", rank: 11.6, step: "task" },
  runnable: { light: "#8a1c1c", dark: "#c14b4b", pattern: "back", rank: 11.9, step: "off CPU" },
  preempted: { light: "#8a1c1c", dark: "#c14b4b", pattern: "diagonal", rank: 12, step: "off CPU" },
  wake_delay: { light: "#b3645f", dark: "#a8625e", pattern: "back", rank: 13, step: "off CPU" },
  blocked: { light: "#484844", dark: "#d4d9df", pattern: "rings", rank: 14, step: "off CPU" },
  halt_poll: { light: "#d0d0cb", dark: "#5d6268", pattern: "sparse", rank: 10.5, step: "L0" },
  halted: { light: "#d0d0cb", dark: "#4a4f55", pattern: "solid", rank: 16, step: "off CPU" },
  idle: { light: "#e2e2de", dark: "#363b41", pattern: "solid", rank: 16.3, step: "off CPU" },
  sleeping: { light: "#e2e2de", dark: "#363b41", pattern: "sparse", rank: 16.6, step: "off CPU" },
  unknown: { light: "#f0f0ed", dark: "#202428", pattern: "hatch", rank: 17, step: "unknown" },
};

/** Curves of one picture, by their place: the first is ink, the others are soft, and each has its dash. */
export const CURVE_DASHES = ["", "7 3", "2 3", "10 3 2 3", "5 5", "1 5"];

/** How a state is drawn; a state this page does not know looks unknown. */
export function lookOf(name: string): StateLook {
  return LOOKS[name] ?? LOOKS.unknown!;
}

/** What interrupts of the host took. */
export const INTERRUPTS = "host interrupts";

/** Who had the time of a state, where shares are told: as figure `levels` has it, `L0` is KVM alone. */
export function whoseOf(name: string): string {
  return ["irq", "softirq", "nmi"].includes(name) ? INTERRUPTS : lookOf(name).step;
}

/** Its fill in an SVG of this page. */
export function fillOf(name: string): string {
  return `url(#pat-${name in LOOKS ? name : "unknown"})`;
}

/** The fill of what has a state or a level as its hue; what has none is grey. */
export function hueOf(name: string): string {
  if (name in LOOKS) return fillOf(name);
  return /^(L\d|VMM)$/.test(name) ? fillOf(levelState(name)) : "var(--soft)";
}

export function colourOf(name: string, theme: Theme): string {
  return lookOf(name)[theme];
}

/** States from the top of a stack to its bottom. */
export function stackOrder(names: string[]): number[] {
  return names.map((_, i) => i).sort((a, b) => lookOf(names[a]!).rank - lookOf(names[b]!).rank);
}

export const STATE_NAMES = Object.keys(LOOKS);

/** A level's own colour: that of its guest, L0's work and the VMM's. */
export function levelState(level: string): string {
  const guests: Record<string, string> = { L3: "guest_l3", L2: "guest_l2", L1: "guest_l1", VMM: "userspace" };
  return level === "L0" ? "handling_l1" : (guests[level] ?? "unknown");
}

export function token(name: string, theme: Theme): string {
  const found = PAGE.find(([known]) => known === name);
  if (found) return theme === "light" ? found[1] : found[2];
  return colourOf(name.replace(/^state-/, ""), theme);
}

/** Every token as custom properties of both themes. */
export function themeSheet(): string {
  const of = (theme: Theme) =>
    [
      ...PAGE.map(([name]) => `--${name}:${token(name, theme)}`),
      ...STATE_NAMES.map((name) => `--state-${name}:${colourOf(name, theme)}`),
      `color-scheme:${theme}`,
    ].join(";");
  return `:root{${of("light")}}:root[data-theme=dark]{${of("dark")}}@media print{:root,:root[data-theme=dark]{${of("light")}}}`;
}
