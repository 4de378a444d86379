/** What is known of one slice: itself, its neighbours, its chain, who woke its thread, and what the CPUs did when it began. */
import type { Recording } from "../../data/source";
import type { Chain, Slice, Wake } from "../../data/types";
import { at, chainAt } from "./found";
import { kindOf } from "./layout";
import { wakeOf } from "./wakes";

/** Slices of a CPU during one of a thread that waits for it. */
const MOST = 1000;

export interface SliceDetails {
  slice: Slice;
  before: Slice | null;
  after: Slice | null;
  chain: Chain | null;
  /** With which its thread began to wait for a CPU here, or got one. */
  wake: Wake | null;
  /** On which CPU its thread ran, or had run until then. */
  cpu: string | null;
  /** Which tasks that CPU ran meanwhile, where the thread lost it: the longest first. */
  by: { task: string; time_ns: number }[];
}

export async function detailsAt(
  recording: Recording,
  lane: number,
  ns: number,
): Promise<SliceDetails | null> {
  const slice = await at(recording, lane, ns);
  if (!slice) return null;
  const { from_ns, to_ns } = slice;
  const [around, chain, cpus] = await Promise.all([
    recording.slices([lane], Math.max(0, from_ns - 1), to_ns + 1, 3),
    chainAt(recording, lane, ns),
    onCpus(recording, lane, slice),
  ]);
  const near = around.get(lane)?.slices ?? [];
  const before = near.find((one) => one.to_ns === from_ns && one.index !== slice.index) ?? null;
  const after = near.find((one) => one.from_ns === to_ns && one.index !== slice.index) ?? null;
  const wake = wakeOf(slice, around.get(lane)?.wakes);
  return { slice, before, after, chain, wake, ...cpus };
}

/** CPUs name the thread that they run, so they tell where a vCPU ran and who came after it. */
async function onCpus(
  recording: Recording,
  lane: number,
  slice: Slice,
): Promise<Pick<SliceDetails, "cpu" | "by">> {
  const { lanes, states } = recording.timeline!;
  const it = lanes.find((known) => known.id === lane)!;
  const cpus = lanes.filter((known) => kindOf(known) === "cpu").map((known) => known.id);
  const none = { cpu: null, by: [] };
  if (kindOf(it) !== "vcpu" || it.tid === null || cpus.length === 0) return none;
  const { from_ns } = slice;
  const lost = /^(preempted|runnable)$/.test(states[slice.state]!.name);
  const found = await recording.slices(cpus, Math.max(0, from_ns - 1), from_ns + 1, 2);
  const mine = (one: Slice) => one.detail.endsWith(`(${it.tid})`);
  for (const [id, { slices }] of found) {
    const here = slices.find((one) => mine(one) && (lost ? one.to_ns === from_ns : one.to_ns > from_ns));
    if (!here) continue;
    const cpu = lanes.find((known) => known.id === id)!.title;
    return { cpu, by: lost ? await tasksOf(recording, id, slice) : [] };
  }
  return none;
}

/** What a CPU ran in the time of a slice, by task. */
async function tasksOf(
  recording: Recording,
  cpu: number,
  { from_ns, to_ns }: Slice,
): Promise<SliceDetails["by"]> {
  const { states } = recording.timeline!;
  const found = await recording.slices([cpu], from_ns, to_ns, MOST);
  const sums = new Map<string, number>();
  for (const one of found.get(cpu)?.slices ?? []) {
    if (states[one.state]!.name !== "task") continue;
    const time = Math.min(to_ns, one.to_ns) - Math.max(from_ns, one.from_ns);
    sums.set(one.detail, (sums.get(one.detail) ?? 0) + time);
  }
  return [...sums].map(([task, time_ns]) => ({ task, time_ns })).sort((a, b) => b.time_ns - a.time_ns);
}
