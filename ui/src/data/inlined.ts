/** A report file as a source: everything lies in `<script id="kvmscope-data">`, as JSON or as base64 of gzip. */

import { plain } from "./plain";
import type { Recording, Source } from "./source";
import { decodeTile, emptyTile, resample, type Tile } from "./tile";
import type {
  Aggregates,
  ChainInFull,
  ChainPage,
  ChainQuery,
  EventPage,
  Report,
  Slices,
  Timeline,
} from "./types";

export interface Inlined {
  report: Report;
  timeline: Timeline | null;
  /** Tiles of all lanes, coarse to fine. */
  pyramid: { t0_ns: number; t1_ns: number; width: number; tile: string }[];
  chains: ChainInFull[];
  /** Sums over all chains; a page of an older kvmscope has none. */
  aggregates?: Aggregates | null;
}

const ID = "report";

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text.trim());
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** Reads the page's data element. */
export async function readInlined(element: Element): Promise<Inlined> {
  const text = element.textContent ?? "";
  if (text.trimStart().startsWith("{")) return JSON.parse(plain(text)) as Inlined;
  const packed = new Blob([bytesOfBase64(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(plain(await new Response(packed).text())) as Inlined;
}

/** Chains of a query, from a list. */
export function selectChains(all: ChainInFull[], asked: ChainQuery): ChainPage {
  const t0 = asked.t0 ?? 0;
  const t1 = asked.t1 ?? Number.POSITIVE_INFINITY;
  const found = all.filter(
    (chain) =>
      (asked.lane === undefined || chain.lane === asked.lane) &&
      (!asked.reason || chain.reason === asked.reason) &&
      chain.to_ns > t0 &&
      chain.from_ns < t1,
  );
  // As on the server: what a disturbed chain took is not the cost of one exit, so such chains stand last.
  const last = (chain: ChainInFull) =>
    (asked.sort === "cost" && chain.cost_ns === null) ||
    ((asked.sort === "cost" || asked.sort === "exits") && (chain.interrupted || chain.migrated));
  const key = (chain: ChainInFull) =>
    asked.sort === "cost" ? (chain.cost_ns ?? 0) : asked.sort === "exits" ? chain.exits : chain.from_ns;
  found.sort(
    (a, b) => Number(last(a)) - Number(last(b)) || (asked.descending ? key(b) - key(a) : key(a) - key(b)),
  );
  const offset = asked.offset ?? 0;
  return { chains: found.slice(offset, offset + (asked.limit ?? 100)), total: found.length };
}

class InlinedRecording implements Recording {
  readonly id = ID;
  readonly inlined = true;
  readonly report: Report;
  readonly timeline: Timeline | null;
  private readonly pyramid: Tile[];

  constructor(private readonly data: Inlined) {
    this.report = data.report;
    this.timeline = data.timeline && data.timeline.lanes.length > 0 ? data.timeline : null;
    this.pyramid = (data.pyramid ?? []).map((level) => decodeTile(bytesOfBase64(level.tile).buffer));
  }

  async tile(t0: number, t1: number, width: number): Promise<Tile> {
    const lanes = this.timeline?.lanes.map((lane) => lane.id) ?? [];
    const into = emptyTile(t0, t1, width, this.timeline?.states.length ?? 0, lanes);
    const pixel = (t1 - t0) / width;
    const fits = (tile: Tile) => (tile.t1 - tile.t0) / tile.width <= pixel && tile.t0 <= t0 && tile.t1 >= t1;
    const from = this.pyramid.find(fits) ?? this.pyramid.at(-1);
    if (from) resample(from, into);
    return into;
  }

  async states(): Promise<null> {
    return null;
  }

  async slices(lane: number, t0: number, t1: number): Promise<Slices | null> {
    const holder = this.data.chains.find(
      (chain) => chain.lane === lane && chain.from_ns <= t0 && chain.to_ns >= t1,
    );
    if (!holder) return null;
    return { slices: holder.slices.filter((slice) => slice.to_ns > t0 && slice.from_ns < t1), left_out: 0 };
  }

  async chains(asked: ChainQuery): Promise<ChainPage> {
    return selectChains(this.data.chains, asked);
  }

  async chain(id: number): Promise<ChainInFull> {
    const chain = this.data.chains.find((chain) => chain.id === id);
    if (!chain) throw new Error("This report file contains only the top chains; `kvmscope serve` shows all.");
    return chain;
  }

  get chainsHeld(): number {
    return this.data.chains.length;
  }

  async aggregates(window: { t0: number; t1: number } | null): Promise<Aggregates | null> {
    return window ? null : (this.data.aggregates ?? null);
  }

  async reportOf(): Promise<null> {
    return null;
  }

  async events(): Promise<EventPage | null> {
    return null;
  }

  tableAddress(): null {
    return null;
  }
}

export function inlined(data: Inlined): Source {
  const recording = new InlinedRecording(data);
  return {
    inlined: true,
    async recordings() {
      const { path, emulated, machines } = data.report.recording;
      const levels = (machines ?? []).map((machine) => machine.id);
      return [{ id: ID, title: path, created: null, emulated, levels, bytes: 0, problem: null }];
    },
    async open() {
      return recording;
    },
  };
}
