/** A report file as a source: everything lies in `<script id="kvmscope-data">`, as JSON or as base64 of gzip. */

import { meanOf, type Wanted } from "./lanes";
import { plain } from "./plain";
import type { Recording, Source } from "./source";
import { decodeTile, emptyTile, meanLane, resample, type Tile } from "./tile";
import type {
  Aggregates,
  ChainInFull,
  ChainPage,
  ChainQuery,
  EventPage,
  Found,
  Report,
  SearchQuery,
  Slice,
  SliceOfLane,
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
  readonly title?: string;
  readonly report: Report;
  readonly timeline: Timeline | null;
  private readonly pyramid: Tile[];

  constructor(
    private readonly data: Inlined,
    title?: string,
  ) {
    if (title) this.title = title;
    this.report = data.report;
    this.timeline = data.timeline && data.timeline.lanes.length > 0 ? data.timeline : null;
    this.pyramid = (data.pyramid ?? []).map((level) => decodeTile(bytesOfBase64(level.tile).buffer));
  }

  async tile(t0: number, t1: number, width: number, wanted: Wanted): Promise<Tile> {
    const pixel = (t1 - t0) / width;
    const fits = (tile: Tile) => (tile.t1 - tile.t0) / tile.width <= pixel && tile.t0 <= t0 && tile.t1 >= t1;
    const from = this.pyramid.find(fits) ?? this.pyramid.at(-1);
    const lanes = [...wanted.lanes, ...wanted.means.flat()];
    const into = emptyTile(t0, t1, width, this.timeline?.states.length ?? 0, lanes);
    if (from) resample(from, into);
    const means = wanted.means.map((some) => ({ ...meanLane(into, some).lanes[0]!, lane: meanOf(some) }));
    return { ...into, lanes: [...into.lanes.slice(0, wanted.lanes.length), ...means] };
  }

  async states(): Promise<null> {
    return null;
  }

  async slices(lanes: number[], t0: number, t1: number): Promise<Map<number, Slices>> {
    const found = new Map<number, Slices>();
    for (const lane of lanes) {
      const holder = this.data.chains.find(
        (chain) => chain.lane === lane && chain.from_ns <= t0 && chain.to_ns >= t1,
      );
      const inside = (slice: Slice) => slice.to_ns > t0 && slice.from_ns < t1;
      if (holder) found.set(lane, { slices: holder.slices.filter(inside), left_out: 0 });
    }
    return found;
  }

  async reasons(): Promise<null> {
    return null;
  }

  /** Over the slices of the chains that the page has, each once. */
  async search({ q, lanes, at, lane }: SearchQuery): Promise<Found> {
    const word = q.trim().toLowerCase();
    const titles = this.timeline?.states.map((state) => state.title.toLowerCase()) ?? [];
    const hits = new Map<string, SliceOfLane>();
    for (const chain of this.data.chains) {
      if (!lanes.includes(chain.lane)) continue;
      for (const slice of chain.slices) {
        if (slice.detail.toLowerCase().includes(word) || titles[slice.state]?.includes(word))
          hits.set(`${chain.lane}/${slice.index}`, { ...slice, lane: chain.lane });
      }
    }
    const here = lane ?? -1;
    const found = [...hits.values()].sort((a, b) => a.from_ns - b.from_ns || a.lane - b.lane);
    const before = found.filter((hit) => hit.from_ns < at || (hit.from_ns === at && hit.lane < here));
    const after = found.filter((hit) => hit.from_ns > at || (hit.from_ns === at && hit.lane > here));
    return {
      count: found.length,
      earlier: before.length,
      later: after.length,
      before: before.at(-1) ?? null,
      after: after[0] ?? null,
    };
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

/** `title`: that of the page, without the program's name. */
export function inlined(data: Inlined, title?: string): Source {
  const recording = new InlinedRecording(data, title);
  return {
    inlined: true,
    async recordings() {
      const { path, emulated, machines } = data.report.recording;
      const levels = (machines ?? []).map((machine) => machine.id);
      const recordings = [{ id: ID, title: path, created: null, emulated, levels, bytes: 0, problem: null }];
      return { recordings, left_out: [] };
    },
    async open() {
      return recording;
    },
  };
}
