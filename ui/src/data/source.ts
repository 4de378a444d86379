/**
 * Where the numbers come from: a server, or the page itself. Views know only these two interfaces.
 *
 * A method answers `null` where this source can never know, such as single events in a report file; the view then
 * says so. What failed throws an `Error` whose message is a sentence.
 */
import type { Wanted } from "./lanes";
import type { Tile } from "./tile";
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

export interface Source {
  /** True where everything lies in the page. */
  readonly inlined: boolean;
  recordings(): Promise<Listing>;
  open(id: string): Promise<Recording>;
  /** Null for a recording that is too large to be read for a list; only a server has briefs. */
  brief?(id: string): Promise<Brief | null>;
  /** How far the server is that is asked to open it. */
  progress?(id: string): Promise<Progress>;
  /** Sends a trace to the server, where it takes any; answers the recording's id. */
  upload?(file: File): Promise<string>;
}

export interface Recording {
  readonly id: string;
  /** True where everything lies in the page. */
  readonly inlined: boolean;
  /** What a saved page calls itself: a plan or a fleet has no path, and a comparison two. */
  readonly title?: string;
  readonly report: Report;
  /** Null where the recording holds no vCPU to draw. */
  readonly timeline: Timeline | null;
  /** Some lanes over `[t0, t1)` in `width` pixels, in the order of `numbersOf(wanted)`. */
  tile(t0: number, t1: number, width: number, wanted: Wanted, signal?: AbortSignal): Promise<Tile>;
  /** Exact time of each lane in each state. */
  states(lanes: number[], t0: number, t1: number): Promise<Map<number, number[]> | null>;
  /** At most `limit` slices of each lane; a lane of which this source has none there is missing. */
  slices(lanes: number[], t0: number, t1: number, limit: number): Promise<Map<number, Slices>>;
  /** What is known of the slices of a window, added up, what took longest first. */
  reasons(lanes: number[], t0: number, t1: number): Promise<Reasons | null>;
  /** The lane of a thread, or of the CPU that it had then; only a server has all slices. */
  laneAt?(ns: number, threads: number[]): Promise<number | null>;
  /** Slices with a word, before and after a place. */
  search(asked: SearchQuery): Promise<Found>;
  chains(query: ChainQuery): Promise<ChainPage>;
  chain(id: number): Promise<ChainInFull>;
  /** Sums over all chains, of a window or of everything; null where this source has them only of everything. */
  aggregates(window: { t0: number; t1: number } | null): Promise<Aggregates | null>;
  /** How many of the recording's chains `chains` can give; null where it gives all. */
  readonly chainsHeld: number | null;
  /** The report of a window alone. */
  reportOf(t0: number, t1: number): Promise<Report | null>;
  /** What `kvmscope compare` answers of it and of another one, recorded later; only a server compares. */
  compared?(other: string): Promise<Report>;
  /** A section with some of its controls set; only a server computes one. */
  set?(section: string, controls: Record<string, string>, signal?: AbortSignal): Promise<Section>;
  /** A window as the Perfetto UI reads it, and how many slices did not fit; only a server has it. */
  perfetto?(t0: number, t1: number): Promise<{ buffer: ArrayBuffer; left_out: number }>;
  events(offset: number, limit: number): Promise<EventPage | null>;
  /** Address of a table as Arrow or JSON, where a server has one. */
  tableAddress(
    section: string,
    table: string,
    format: "json" | "arrow",
    window: { t0: number; t1: number } | null,
  ): string | null;
}
