/** The server's API as a source. */

import { laneAt } from "./cpus";
import { listOf, numbersOf, type Wanted } from "./lanes";
import { plain } from "./plain";
import { answering, SILENCE } from "./silence";
import type { Recording, Source } from "./source";
import { decodeTile, emptyTile, type Tile } from "./tile";
import type {
  Aggregates,
  Brief,
  ChainInFull,
  ChainPage,
  ChainQuery,
  EventPage,
  Found,
  Listing,
  Progress,
  Reasons,
  Report,
  SearchQuery,
  Section,
  Slices,
  Timeline,
} from "./types";

async function answer(path: string, how: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, how);
  } catch (error) {
    if (how.signal?.aborted) throw error;
    void answering();
    throw new Error(SILENCE);
  }
  if (response.ok) return response;
  const text = await response.text();
  let sentence = `The server answered ${response.status} for ${path}.`;
  try {
    sentence = (JSON.parse(text) as { error?: string }).error ?? sentence;
  } catch {
    // A body that is not JSON came from something else than the server; its status says enough.
  }
  throw new Error(sentence);
}

async function json<T>(path: string, how: RequestInit = {}): Promise<T> {
  return JSON.parse(plain(await (await answer(path, how)).text())) as T;
}

function query(values: object): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(
    pairs.map(([key, value]) => [key, typeof value === "boolean" ? String(Number(value)) : String(value)]),
  ).toString();
}

class ServedRecording implements Recording {
  readonly inlined = false;
  private readonly base: string;

  constructor(
    readonly id: string,
    readonly report: Report,
    readonly timeline: Timeline | null,
  ) {
    this.base = `api/recordings/${encodeURIComponent(id)}`;
  }

  async tile(t0: number, t1: number, width: number, wanted: Wanted, signal?: AbortSignal): Promise<Tile> {
    const numbers = numbersOf(wanted);
    if (numbers.length === 0) return emptyTile(t0, t1, width, this.timeline?.states.length ?? 0, []);
    const lanes = listOf(wanted.lanes);
    const means = wanted.means.map(listOf).join(";");
    const reply = await answer(
      `${this.base}/tile?${query({ lanes, means, t0, t1, w: width })}`,
      signal ? { signal } : {},
    );
    const tile = decodeTile(await reply.arrayBuffer());
    // The server has them in the order of the list, means under numbers of its own.
    const order = [...new Set(wanted.lanes)].sort((a, b) => a - b).concat(numbers.slice(wanted.lanes.length));
    return { ...tile, lanes: tile.lanes.map((lane, i) => ({ ...lane, lane: order[i]! })) };
  }

  async states(lanes: number[], t0: number, t1: number): Promise<Map<number, number[]>> {
    if (lanes.length === 0) return new Map();
    const range = { lanes: listOf(lanes), t0: Math.floor(t0), t1: Math.ceil(t1) };
    const each = await json<{ lanes: { lane: number; time_ns: number[] }[] }>(
      `${this.base}/states?${query(range)}`,
    );
    return new Map(each.lanes.map(({ lane, time_ns }) => [lane, time_ns]));
  }

  async slices(lanes: number[], t0: number, t1: number, limit: number): Promise<Map<number, Slices>> {
    if (lanes.length === 0) return new Map();
    const range = { lanes: listOf(lanes), t0: Math.floor(t0), t1: Math.ceil(t1), limit };
    const each = await json<{ lanes: ({ lane: number } & Slices)[] }>(`${this.base}/slices?${query(range)}`);
    return new Map(each.lanes.map((of) => [of.lane, of]));
  }

  reasons(lanes: number[], t0: number, t1: number): Promise<Reasons> {
    const range = { lanes: listOf(lanes), t0: Math.floor(t0), t1: Math.ceil(t1), limit: 8 };
    return json(`${this.base}/reasons?${query(range)}`);
  }

  laneAt(ns: number, threads: number[]): Promise<number | null> {
    // Without it the time is shown all the same.
    return laneAt(this, ns, threads).catch(() => null);
  }

  search({ lanes, at, ...asked }: SearchQuery): Promise<Found> {
    return json(`${this.base}/search?${query({ ...asked, at: Math.round(at), lanes: listOf(lanes) })}`);
  }

  chains(asked: ChainQuery): Promise<ChainPage> {
    return json(`${this.base}/chains?${query(asked)}`);
  }

  chain(id: number): Promise<ChainInFull> {
    return json(`${this.base}/chains/${id}`);
  }

  readonly chainsHeld = null;

  aggregates(window: { t0: number; t1: number } | null): Promise<Aggregates> {
    const range = window ? { t0: Math.floor(window.t0), t1: Math.ceil(window.t1) } : {};
    return json(`${this.base}/aggregates?${query(range)}`);
  }

  reportOf(t0: number, t1: number): Promise<Report> {
    return json(`${this.base}/report?${query({ t0: Math.floor(t0), t1: Math.ceil(t1) })}`);
  }

  compared(other: string): Promise<Report> {
    return json(`${this.base}/compared/${encodeURIComponent(other)}`);
  }

  set(section: string, controls: Record<string, string>, signal?: AbortSignal): Promise<Section> {
    return json(`${this.base}/sections/${section}?${query(controls)}`, signal ? { signal } : {});
  }

  async perfetto(t0: number, t1: number): Promise<{ buffer: ArrayBuffer; left_out: number }> {
    const range = query({ t0: Math.floor(t0), t1: Math.ceil(t1) });
    const reply = await answer(`${this.base}/perfetto?${range}`);
    return {
      buffer: await reply.arrayBuffer(),
      left_out: Number(reply.headers.get("x-kvmscope-left-out") ?? 0),
    };
  }

  events(offset: number, limit: number): Promise<EventPage> {
    return json(`${this.base}/events?${query({ offset, limit })}`);
  }

  tableAddress(
    section: string,
    table: string,
    format: "json" | "arrow",
    window: { t0: number; t1: number } | null,
  ): string {
    return `${this.base}/tables/${section}/${table}?${query({ format, ...window })}`;
  }
}

export const server: Source = {
  inlined: false,
  async recordings() {
    return json<Listing>("api/recordings");
  },
  async open(id) {
    const base = `api/recordings/${encodeURIComponent(id)}`;
    const [report, timeline] = await Promise.all([
      json<Report>(`${base}/report`),
      json<Timeline>(`${base}/timeline`),
    ]);
    return new ServedRecording(id, report, timeline.lanes.length > 0 ? timeline : null);
  },
  brief(id) {
    return json<Brief | null>(`api/recordings/${encodeURIComponent(id)}/brief`);
  },
  progress(id) {
    return json<Progress>(`api/recordings/${encodeURIComponent(id)}/progress`);
  },
  async upload(file) {
    const sent = await answer(`api/upload?${query({ name: file.name })}`, { method: "POST", body: file });
    return ((await sent.json()) as { id: string }).id;
  },
};
