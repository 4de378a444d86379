/** A recording that is being made: the samples of the server's `/api/live`, as they come. */
import { SILENCE } from "./silence";

export type Shares = Record<string, number | null>;

export interface VmSample {
  vm: string;
  vcpus: number;
  exits_per_second: number | null;
  userspace_exits_per_second: number | null;
  shares: Shares;
}

export interface Sample extends Omit<VmSample, "vm"> {
  number: number;
  from_ns: number;
  to_ns: number;
  seen_share: number;
  events_per_second: number;
  chains_per_second: number | null;
  exits_per_chain: number | null;
  wakeup_p99_ns: number | null;
  vms: VmSample[];
  lost_events: number;
  bytes: number;
}

/** Which trial of a lab, and how many like it there will be; 0 where that is not kept. */
export interface Trial {
  design: string;
  pattern: "chain" | "north-south";
  vnfs: number;
  size_bytes: number;
  repeat: number;
  repeats: number;
}

/** A sample of a datapath while it is measured: packets per second. */
export interface RateLook {
  number: number;
  from_ns: number;
  to_ns: number;
  read_ns: number;
  trial: Trial;
  sent_pps: number;
  received_pps: number;
  /** Of all VNFs together; `vnfs_pps` has each. */
  system_pps: number;
  vnfs_pps: number[];
  ceiling: { resource: string; system_pps: number; from: string } | null;
  published: { point: string; design: string; vnfs: number; system_pps: number; source: string }[];
}

export function isRate(sample: Sample | RateLook): sample is RateLook {
  return "trial" in sample;
}

export type LiveState =
  | { kind: "waiting" }
  | { kind: "live"; every_ns: number }
  | { kind: "lost" }
  | { kind: "ended" }
  | { kind: "silent" }
  | { kind: "refused"; sentence: string };

const KEPT = 300;

/** Adds a sample; one that came before, over a connection that broke, is not added twice. */
export function withSample<S extends { number: number }>(samples: S[], sample: S): S[] {
  const last = samples.at(-1);
  if (last && sample.number <= last.number) return samples;
  return [...samples, sample].slice(-KEPT);
}

/** Follows a recording until it ends; the answer stops following. */
export function follow(
  id: string,
  heard: (sample: Sample | RateLook) => void,
  turned: (state: LiveState) => void,
): () => void {
  const address = `api/live?recording=${encodeURIComponent(id)}`;
  const stream = new EventSource(address);
  let every_ns = 0;
  const data = <T>(event: Event) => JSON.parse((event as MessageEvent<string>).data) as T;
  stream.addEventListener("recording", (event) => {
    every_ns = data<{ every_ns: number }>(event).every_ns;
    turned({ kind: "live", every_ns });
  });
  stream.addEventListener("sample", (event) => heard(data<Sample | RateLook>(event)));
  stream.addEventListener("end", (event) => {
    stream.close();
    turned({ kind: data<{ reason: string }>(event).reason === "ended" ? "ended" : "silent" });
  });
  stream.onerror = () => {
    // A browser asks again by itself, unless it was refused; then the answer has a sentence that it does not show.
    if (stream.readyState !== EventSource.CLOSED) turned({ kind: "lost" });
    else void why(address).then((sentence) => turned({ kind: "refused", sentence }));
  };
  return () => stream.close();
}

async function why(address: string): Promise<string> {
  try {
    const reply = await fetch(address);
    const { error } = (await reply.json()) as { error?: string };
    return error ?? `The server answered ${reply.status}.`;
  } catch {
    return SILENCE;
  }
}
