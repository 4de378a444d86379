/** The server's API as a source. */

import { plain } from "./plain";
import type { Recording, Source } from "./source";
import { decodeTile, emptyTile, type Tile } from "./tile";
import type {
  Aggregates,
  Brief,
  ChainInFull,
  ChainPage,
  ChainQuery,
  EventPage,
  RecordingInfo,
  Report,
  Section,
  Slices,
  Timeline,
} from "./types";

const LANES_PER_TILE = 64;

async function answer(path: string, how: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, how);
  } catch (error) {
    if (how.signal?.aborted) throw error;
    throw new Error("The server does not answer. Is `kvmscope serve` still running?");
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

  async tile(t0: number, t1: number, width: number, signal?: AbortSignal): Promise<Tile> {
    const lanes = this.timeline?.lanes.map((lane) => lane.id) ?? [];
    if (lanes.length === 0) return emptyTile(t0, t1, width, this.timeline?.states.length ?? 0, []);
    const parts: Tile[] = [];
    for (let at = 0; at < lanes.length; at += LANES_PER_TILE) {
      const some = lanes.slice(at, at + LANES_PER_TILE).join(",");
      const reply = await answer(
        `${this.base}/tile?lanes=${some}&t0=${t0}&t1=${t1}&w=${width}`,
        signal ? { signal } : {},
      );
      parts.push(decodeTile(await reply.arrayBuffer()));
    }
    return { ...parts[0]!, lanes: parts.flatMap((part) => part.lanes) };
  }

  async states(lane: number, t0: number, t1: number): Promise<number[]> {
    return (await json<{ time_ns: number[] }>(`${this.base}/states?${query({ lane, t0, t1 })}`)).time_ns;
  }

  slices(lane: number, t0: number, t1: number, limit: number): Promise<Slices> {
    return json(`${this.base}/slices?${query({ lane, t0, t1, limit })}`);
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
    return (await json<{ recordings: RecordingInfo[] }>("api/recordings")).recordings;
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
  async upload(file) {
    const sent = await answer(`api/upload?${query({ name: file.name })}`, { method: "POST", body: file });
    return ((await sent.json()) as { id: string }).id;
  },
};
