/** Lanes of CPUs: which one a row or a thread is about. */
import type { Row } from "../maths/rows";
import type { Recording } from "./source";
import type { Lane, Timeline } from "./types";

/** The lane of a row's CPU, by its columns `machine` and `cpu`; of a row that names none, those of all CPUs. */
export function lanesOfRow({ lanes }: Timeline, { machine, cpu }: Row): number[] {
  const cpus = lanes.filter(isCpu);
  // Groups are called as in `facts/timeline/source.rs`.
  const names = [`${machine} (own trace)`, `${machine} CPUs`, "host CPUs"];
  const group = names.find((name) => cpus.some((lane) => lane.group === name));
  const own = cpus.filter((lane) => lane.group === group);
  const named = own.filter(({ title }) => title === `CPU ${cpu}`);
  return (named.length > 0 ? named : own).map(({ id }) => id);
}

/** The lane of a thread, else that of the CPU that it had at an instant, or had last until then. */
export async function laneAt(recording: Recording, ns: number, threads: number[]): Promise<number | null> {
  const { lanes } = recording.timeline!;
  const own = lanes.find(({ tid }) => tid !== null && threads.includes(tid));
  const cpus = lanes.filter(isCpu).map(({ id }) => id);
  if (own || threads.length === 0 || cpus.length === 0) return own?.id ?? null;
  // CPUs name the thread that they run.
  const { before, after } = await recording.search({ q: `(${threads[0]})`, lanes: cpus, at: ns });
  return (before ?? after)?.lane ?? null;
}

function isCpu({ kind }: Lane): boolean {
  return kind === "cpu" || kind === "guest_cpu";
}
