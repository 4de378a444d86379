/** What had a CPU within a window: on which lane, and the slice that took most of it. A report file has too few slices to tell. */
import type { Pick } from "../maths/picked";
import type { Window } from "../maths/window";
import type { OnCpu, Recording } from "./source";
import type { Lane, Timeline } from "./types";

const SLICES = 10_000;

export async function onCpu(recording: Recording, window: Window, who: OnCpu): Promise<Pick | null> {
  const { timeline } = recording;
  if (!timeline) return null;
  const lane = who.cpu
    ? laneOfCpu(timeline, who.cpu.machine, who.cpu.cpu)
    : await laneOfThread(recording, timeline, who.threads ?? [], window);
  return lane === null ? null : longestIn(recording, lane, window);
}

/** The lane of a CPU, by the trace of its machine: groups are called as in `facts/timeline/source.rs`. */
export function laneOfCpu({ lanes }: Timeline, machine: string, cpu: number): number | null {
  const cpus = lanes.filter(isCpu);
  const names = [`${machine} (own trace)`, `${machine} CPUs`, "host CPUs"];
  const group = names.find((name) => cpus.some((lane) => lane.group === name));
  return cpus.find((lane) => lane.group === group && lane.title === `CPU ${cpu}`)?.id ?? null;
}

/** The lane of a thread, else that of the CPU that it had when the window began, or had last until then. */
async function laneOfThread(
  recording: Recording,
  { lanes }: Timeline,
  threads: number[],
  { t0 }: Window,
): Promise<number | null> {
  const own = lanes.find(({ tid }) => tid !== null && threads.includes(tid));
  const cpus = lanes.filter(isCpu).map(({ id }) => id);
  if (own || threads.length === 0 || cpus.length === 0) return own?.id ?? null;
  // CPUs name the thread that they run.
  const { before, after } = await recording.search({ q: `(${threads[0]})`, lanes: cpus, at: t0 });
  return (before ?? after)?.lane ?? null;
}

async function longestIn(recording: Recording, lane: number, { t0, t1 }: Window): Promise<Pick | null> {
  const { slices } = (await recording.slices([lane], t0, t1, SLICES)).get(lane) ?? { slices: [] };
  const inside = slices.map(({ from_ns, to_ns }) => ({
    ns: Math.max(t0, from_ns),
    length: Math.min(t1, to_ns) - Math.max(t0, from_ns),
  }));
  const first = inside.toSorted((a, b) => b.length - a.length)[0];
  return first ? { lane, ns: first.ns } : null;
}

function isCpu({ kind }: Lane): boolean {
  return kind === "cpu" || kind === "guest_cpu";
}
