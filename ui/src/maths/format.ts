/** Numbers for people: unit always, three figures or so, digits grouped. */

import type { Recording } from "../data/source";

const STEPS: [number, string][] = [
  [86.4e12, "days"],
  [3.6e12, "h"],
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
];

/** `1.2 ms`, `480 ns`: rounded as the text report and the static page round (base::number). */
export function duration(ns: number): string {
  // 999.95 of a unit would print as 1000.0 and counts as the next one.
  const [size, unit] = STEPS.find(([size]) => Math.abs(ns) >= size * 0.99995) ?? [1, "ns"];
  return unit === "ns" ? `${plain(ns)} ns` : `${decimal(ns / size)} ${unit}`;
}

/** A round length, such as a mark of an axis: `100 ms` and not `100.0 ms`. */
export function roundDuration(ns: number): string {
  return duration(ns).replace(".0 ", " ");
}

/** The same for an amount in any unit: a mark has no more digits than it needs. */
export function roundAmount(value: number, unit: string): string {
  return /^(ns|share|bytes)/.test(unit) ? amount(value, unit).replace(".0 ", " ") : plain(value);
}

// Made once: a table prints thousands of numbers with each letter in its filter.
const WITH_DECIMAL = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/**
 * So many digits behind the point, rounded as Rust rounds: what lies just between two goes to the even one, where JavaScript goes up.
 * Sentences of the report and numbers that the page writes itself are of the same values.
 */
export function fixed(value: number, digits: number): string {
  const text = value.toFixed(digits);
  const isBetween = Number.isInteger(value * 2 ** (digits + 1)) && !Number.isInteger(value * 2 ** digits);
  return isBetween && Number(text.at(-1)) % 2 === 1 ? (value * (1 - Number.EPSILON)).toFixed(digits) : text;
}

/** One decimal, digits grouped. */
function decimal(value: number): string {
  return WITH_DECIMAL.format(Number(fixed(value, 1)));
}

/** A time on the axis, in seconds with as many digits as `step` needs; without one, to the microsecond. */
export function instant(ns: number, step = 1e3): string {
  if (ns === 0) return "0 s";
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, step)))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

const SMALL: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];

/** How the marks of an axis are labelled: in the unit of their step, from `base` on where whole times would be too long. */
export interface Marks {
  /** What marks are counted from, as words; empty: from the first event. */
  base: string;
  of(ns: number): string;
}

/** Decimals of a unit that are still easier than a smaller unit. */
const DECIMALS = 3;

/** Labels of marks every `step` from `t0` to `t1`: `1.5 s`, `480 us`; deep inside, `+250 ns` after a base. */
export function marksOf(t0: number, t1: number, step: number): Marks {
  const unitOf = (ns: number) => SMALL.find(([size]) => ns >= size) ?? SMALL[3]!;
  const [large, name] = unitOf(t1);
  const digits = Math.max(0, Math.ceil(Math.log10(large / step) - 1e-9));
  if (digits <= DECIMALS)
    return { base: "", of: (ns) => (ns === 0 ? `0 ${name}` : `${(ns / large).toFixed(digits)} ${name}`) };
  // A base of round length, so that it stays while one moves a little.
  const round = 10 ** Math.ceil(Math.log10(Math.max(1, t1 - t0)));
  const base = Math.floor(t0 / round) * round;
  const [size, unit] = unitOf(step);
  return { base: instant(base, round), of: (ns) => `+${grouped((ns - base) / size)} ${unit}` };
}

/** A time with as many digits as a window of this length needs, without trailing zeros: `12.000345 s`, `60 ns`. */
export function placed(ns: number, length: number): string {
  if (ns !== 0 && Math.abs(ns) < 1e6) return duration(ns);
  return instant(ns, Math.max(1, length / 1000));
}

export function grouped(value: number): string {
  return WHOLE.format(Math.round(value));
}

/** A number per second: digits grouped, or three figures. */
export function rate(value: number): string {
  if (value === 0) return "0";
  if (value >= 100) return grouped(value);
  return value >= 0.01 ? value.toFixed(value >= 10 ? 1 : 2) : "<0.01";
}

/** Something a second as the text report says it: whole from 10 on. */
export function perSecond(value: number): string {
  return value >= 9.95 ? grouped(value) : plain(Math.round(value * 10) / 10);
}

/** A number with three figures at least, as the text report has it (base::number::plain). */
export function plain(value: number): string {
  const size = Math.abs(value);
  if (size < 1e-9) return "0";
  const digits = Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 5;
  return Number(fixed(value, digits)).toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** `12.3 %`; a share that is there is never `0 %`, and one that is not whole never `100 %`. */
export function percent(share: number): string {
  const value = share * 100;
  if (value > 0 && value < 0.05) return "<0.1 %";
  if (value >= 99.95 && value < 100) return ">99.9 %";
  return value === 0 || value === 100 ? `${value} %` : `${fixed(value, 1)} %`;
}

/** `8.62 Mpps`; more digits of what is less than one. */
export function packetsPerSecond(pps: number): string {
  return `${hundredths(pps / 1e6)} Mpps`;
}

/** `4.41 Gb/s`, likewise. */
export function bitsPerSecond(bits: number): string {
  return `${hundredths(bits / 1e9)} Gb/s`;
}

function hundredths(value: number): string {
  return value < 1 ? `${Number(fixed(value, value >= 0.1 ? 3 : 5))}` : fixed(value, 2);
}

/** Whether amounts of a unit have it in their words, or need none. */
export function hasWords(unit: string): boolean {
  return ["ns", "share", "bytes", "bytes/s", "count"].includes(unit);
}

/** An amount in the unit of its column. */
export function amount(value: number, unit: string): string {
  if (unit === "ns") return duration(value);
  if (unit === "share") return percent(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/s") return `${bytes(value)}/s`;
  if (Number.isInteger(value)) return grouped(value);
  // What two digits behind the point would make nothing of has more.
  if (Math.abs(value) < 0.1) return plain(value);
  return Math.abs(value) >= 100 ? grouped(value) : value.toFixed(2);
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

/** `2026-11-22 10:42 UTC` of `2026-11-22T10:42:03Z`; what is no such time stays as it is. */
export function minute(utc: string): string {
  const found = utc.match(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:[\d.]+)?Z$/);
  return found ? `${found[1]} ${found[2]} UTC` : utc;
}

/** `1 chain`, `2 chains`. */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** `VMREAD x8, CPUID`: equal neighbours counted. */
export function runs(sequence: string[]): { name: string; count: number }[] {
  const out: { name: string; count: number }[] = [];
  for (const name of sequence) {
    const last = out.at(-1);
    if (last?.name === name) last.count++;
    else out.push({ name, count: 1 });
  }
  return out;
}

/** The last part of the recording's path: whoever made a report file does not send the names of their directories. */
export function nameOf(open: Recording): string {
  return open.title ?? open.report.recording.path.split("/").filter(Boolean).at(-1) ?? "recording";
}

/** An emulator as people call it. */
export function emulatorOf(by: string): string {
  return by === "bochs" ? "Bochs" : by === "tcg" ? "QEMU TCG" : by;
}

/** A word as a shell takes it: names of VMs are chosen by others. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
