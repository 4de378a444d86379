/** Samples of a measured datapath as gauges, while a lab runs and out of its recording. */
import type { RateLook, Trial } from "../data/live";
import type { Report } from "../data/types";
import { counted } from "./format";
import { type Mark, nice, type Series } from "./gauges";
import { number, type Row, rowsOf, tableOf, text } from "./rows";

/** What the gauges count, and where: the rule of the talk of 2017 and of every rate here. */
export const COUNTED = "frames with FCS, sent by all VNFs";

/** `Chain of 4 VNFs on ovs-dpdk, 64 bytes, trial 1 of 2`. */
export function trialWords({ design, pattern, vnfs, size_bytes, repeat, repeats }: Trial): string {
  const what =
    pattern === "chain"
      ? `Chain of ${counted(vnfs, "VNF")}`
      : `North-south, ${counted(vnfs, "VNF")} side by side`;
  return `${what} on ${design}, ${size_bytes} bytes, trial ${repeat + 1}${repeats > 0 ? ` of ${repeats}` : ""}`;
}

function isSame(a: Trial, b: Trial): boolean {
  return keyOf(a) === keyOf(b);
}

/** Three figures, and never 0 for what is more. */
export function figures(value: number): string {
  if (value === 0) return "0";
  if (value < 0.0005) return "<0.001";
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3);
}

/** Gb/s of so many packets a second, the frame check sequence counted. */
export function gbps(pps: number, { size_bytes }: Trial): number {
  return (pps * size_bytes * 8) / 1e9;
}

/**
 * Gauges of the trial of sample `at`, with a value for each of its samples, and the place of `at` among them. All of
 * one unit have one scale, so that bars compare.
 */
export function ratesAt(
  looks: RateLook[],
  at: number,
): { series: Series[]; index: number; looks: RateLook[] } {
  const now = looks[at];
  if (!now) return { series: [], index: 0, looks: [] };
  const { trial } = now;
  const own = looks.filter((look) => isSame(look.trial, trial));
  const mpps = (pps: number) => pps / 1e6;
  const gb = (pps: number) => gbps(pps, trial);
  const { ceiling, published } = now;
  // With VMs of its own each published rate is divided by those.
  const marks = (of: (pps: number) => number, each: boolean): Mark[] => [
    ...(ceiling
      ? [
          {
            kind: "modelled" as const,
            value: of(ceiling.system_pps / (each ? trial.vnfs : 1)),
            label: ceiling.resource,
          },
        ]
      : []),
    ...published.map((it) => ({
      kind: "published" as const,
      value: of(it.system_pps / (each ? it.vnfs : 1)),
      label: `${it.design}, ${counted(it.vnfs, "VM")}`,
    })),
  ];
  const series = (
    title: string,
    unit: "Mpps" | "Gb/s",
    of: (pps: number) => number,
    pps: (look: RateLook) => number | null,
    held: Mark[],
    also?: string[],
  ): Series => {
    const values = own.map((look) => {
      const value = pps(look);
      return value === null ? null : of(value);
    });
    const ceilings = held.filter((mark) => mark.kind === "modelled").map((mark) => mark.value);
    const most = nice(Math.max(0, ...values.map((value) => value ?? 0), ...ceilings));
    return { title, unit, state: "", values, most, marks: held, ...(also ? { also } : {}) };
  };
  const ends = trial.pattern === "chain" ? "end of the chain" : "ends of all VNFs";
  const each = trial.vnfs > 1 ? Array.from({ length: trial.vnfs }, (_, vnf) => vnf) : [];
  const ofEach = each.map((vnf) => {
    const pps = (look: RateLook) => look.vnfs_pps[vnf] ?? null;
    const also = own.map((look) => `${figures(gb(pps(look) ?? 0))} Gb/s`);
    return series(`sent by VNF ${vnf + 1}`, "Mpps", mpps, pps, marks(mpps, true), also);
  });
  const all = [
    series("all VNFs", "Mpps", mpps, (look) => look.system_pps, marks(mpps, false)),
    series("all VNFs", "Gb/s", gb, (look) => look.system_pps, marks(gb, false)),
    ...(trial.pattern === "chain" && trial.vnfs > 1
      ? [series(ends, "Mpps", mpps, (look) => look.received_pps, marks(mpps, true))]
      : []),
    ...ofEach,
  ];
  const most = Math.max(...all.filter(({ unit }) => unit === "Mpps").map((it) => it.most));
  return {
    series: all.map((it) => (it.unit === "Mpps" ? { ...it, most } : it)),
    index: own.indexOf(now),
    looks: own,
  };
}

const keyOf = (trial: Trial) =>
  [trial.design, trial.pattern, trial.vnfs, trial.size_bytes, trial.repeat].join(" ");

function trialOf(row: Row): Trial {
  return {
    design: text(row, "design"),
    pattern: text(row, "pattern") === "chain" ? "chain" : "north-south",
    vnfs: number(row, "vnfs"),
    size_bytes: number(row, "size_bytes"),
    repeat: number(row, "repeat"),
    repeats: 0,
  };
}

/** The samples that a recording holds, of the first machine that has any, in the order in which they were taken. */
export function looksOf(report: Report): RateLook[] {
  const rows = rowsOf(tableOf(report, "datapath.samples"));
  const machine = rows[0]?.machine;
  const held = new Map<string, Pick<RateLook, "ceiling" | "published">>();
  for (const row of rowsOf(tableOf(report, "datapath.marks")).filter((it) => it.machine === machine)) {
    const key = keyOf(trialOf(row));
    const of = held.get(key) ?? { ceiling: null, published: [] };
    held.set(key, of);
    const [name, system_pps, source] = [text(row, "name"), number(row, "system_pps"), text(row, "source")];
    if (row.kind === "modelled") of.ceiling = { resource: name, system_pps, from: source };
    else {
      const [design, vnfs] = [text(row, "of_design"), number(row, "of_vnfs")];
      of.published.push({ point: name, design, vnfs, system_pps, source });
    }
  }
  const looks: RateLook[] = [];
  const repeats = Math.max(0, ...rows.map((row) => number(row, "repeat") + 1));
  for (const row of rows.filter((it) => it.machine === machine)) {
    const trial = { ...trialOf(row), repeats };
    const [from_ns, to_ns] = [number(row, "from_ns"), number(row, "to_ns")];
    let look = looks.at(-1);
    if (!look || look.to_ns !== to_ns || !isSame(look.trial, trial)) {
      look = {
        number: looks.length,
        from_ns,
        to_ns,
        read_ns: number(row, "read_ns"),
        trial,
        sent_pps: 0,
        received_pps: 0,
        system_pps: 0,
        vnfs_pps: [],
        ...(held.get(keyOf(trial)) ?? { ceiling: null, published: [] }),
      };
      looks.push(look);
    }
    const pps = number(row, "pps");
    const counted = text(row, "counted");
    if (counted === "sent") look.sent_pps = pps;
    else if (counted === "received") look.received_pps = pps;
    else if (counted === "all VNFs") look.system_pps = pps;
    else look.vnfs_pps.push(pps);
  }
  return looks.sort((a, b) => a.to_ns - b.to_ns);
}
