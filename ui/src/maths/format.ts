/** Numbers for people: unit always, three figures or so, digits grouped. */

const STEPS: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "us"],
  [1, "ns"],
];

/** `1.2 ms`, `480 ns`, as the text report writes them. */
export function duration(ns: number): string {
  if (ns === 0) return "0 ns";
  const [size, unit] = STEPS.find(([size]) => Math.abs(ns) >= size * 0.9995) ?? [1, "ns"];
  return `${figures(ns / size, unit === "ns")} ${unit}`;
}

/** A time on the axis, in seconds with as many digits as `step` needs; without one, to the microsecond. */
export function instant(ns: number, step = 1e3): string {
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(1, step)))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

function figures(value: number, whole: boolean): string {
  const size = Math.abs(value);
  if (whole || size >= 100) return grouped(Math.round(value));
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** `12.3 %`, `<0.1 %`. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "<0.1 %";
  return `${(share * 100).toFixed(1)} %`;
}

/** An amount in the unit of its column. */
export function amount(value: number, unit: string): string {
  if (unit === "ns") return duration(value);
  if (unit === "share") return percent(value);
  if (unit === "bytes") return bytes(value);
  if (Number.isInteger(value)) return grouped(value);
  return Math.abs(value) >= 100 ? grouped(value) : value.toFixed(2);
}

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
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
