/**
 * Tiles that were asked for once are kept: 512 pixels each, a power of two of nanoseconds per pixel, so that every
 * zoom of a gesture falls on the same few tiles. A tile has the lanes that were on screen; more are added as they come.
 *
 * ```text
 * places of a level   | 3 | 4 | 5 | 6 |      neighbours that lack the same lanes are one request: all lanes, all places
 *                         [ shown ]
 * ```
 * While a finer tile is on its way, the finest coarser one that covers its place stands in.
 */
import { numbersOf, type Wanted } from "./lanes";
import type { Recording } from "./source";
import { split, type Tile } from "./tile";

export const TILE_PIXELS = 512;
/** Above this, those that were not used for longest are forgotten. */
const KEPT_BYTES = 32 << 20;
/** The server's bound: a request has at most 8,192 pixels. */
const MOST_PLACES = 16;

/** The level whose pixel is no longer than a screen's: 2^level ns. */
export function levelFor(nsPerPixel: number): number {
  return Math.max(0, Math.floor(Math.log2(Math.max(1, nsPerPixel))));
}

/** Positions of the tiles of `level` that touch `[t0, t1)`. */
export function placesOf(level: number, t0: number, t1: number): number[] {
  const span = TILE_PIXELS * 2 ** level;
  const first = Math.floor(Math.max(0, t0) / span);
  const last = Math.max(first, Math.ceil(t1 / span) - 1);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** After a failure nothing is asked for so long: each drawing would ask again. */
const PATIENCE_MS = 1000;

interface Asked {
  level: number;
  places: number[];
  numbers: Set<number>;
  controller: AbortController;
}

export class TileCache {
  private readonly kept = new Map<string, Tile>();
  private bytes = 0;
  private under: Asked[] = [];
  private failed = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly recording: Recording,
    private readonly arrived: (error?: Error) => void,
  ) {}

  /**
   * Tiles to draw for a window, coarse ones first; asks for what is missing and aborts what is stale. `ahead` is wanted
   * soon: it is asked for as soon as any of `shown` is missing, and needs no request of its own then.
   */
  window(t0: number, t1: number, nsPerPixel: number, shown: Wanted, ahead: Wanted = shown): Tile[] {
    const level = levelFor(nsPerPixel);
    const span = TILE_PIXELS * 2 ** level;
    const end = this.recording.timeline?.span.to_ns ?? 0;
    const inside = (place: number) => place >= 0 && place * span < end;
    const wanted = placesOf(level, t0, t1).filter(inside);
    const near = placesOf(level, Math.max(0, t0 - span), t1 + span).filter(inside);
    this.under = this.under.filter((asked) => {
      if (asked.level === level && asked.places.some((place) => near.includes(place))) return true;
      asked.controller.abort();
      return false;
    });
    const numbers = numbersOf(shown);
    this.ask(level, near, numbers, ahead);
    const missing = wanted.some((place) => !this.has(`${level}/${place}`, numbers));
    const found: Tile[] = [];
    if (missing) {
      for (let coarse = level + 12; coarse > level; coarse--) {
        for (const place of placesOf(coarse, t0, t1)) this.use(`${coarse}/${place}`, found);
      }
    }
    for (const place of wanted) this.use(`${level}/${place}`, found);
    return found;
  }

  private use(key: string, found: Tile[]): void {
    const tile = this.kept.get(key);
    if (!tile) return;
    this.kept.delete(key);
    this.kept.set(key, tile);
    found.push(tile);
  }

  private has(key: string, numbers: number[]): boolean {
    const tile = this.kept.get(key);
    return tile !== undefined && lacking(tile, numbers).length === 0;
  }

  /** Requests for runs of places that lack the same. */
  private ask(level: number, places: number[], shown: number[], ahead: Wanted): void {
    if (performance.now() - this.failed < PATIENCE_MS) return;
    const all = numbersOf(ahead);
    const needs = places.map((place) => {
      const comes = this.under.filter((asked) => asked.level === level && asked.places.includes(place));
      const missing = (numbers: number[]) =>
        lacking(this.kept.get(`${level}/${place}`), numbers).filter(
          (number) => !comes.some((asked) => asked.numbers.has(number)),
        );
      return missing(shown).length > 0 ? missing(all) : [];
    });
    for (let at = 0; at < places.length; ) {
      const missing = needs[at]!;
      let to = at + 1;
      while (to < places.length && to - at < MOST_PLACES && needs[to]!.join() === missing.join()) to++;
      if (missing.length > 0) {
        const some = new Set(missing);
        const means = ahead.means.filter((_, i) => some.has(all[ahead.lanes.length + i]!));
        this.request(level, places.slice(at, to), {
          lanes: ahead.lanes.filter((lane) => some.has(lane)),
          means,
        });
      }
      at = to;
    }
  }

  private request(level: number, places: number[], wanted: Wanted): void {
    const controller = new AbortController();
    const numbers = numbersOf(wanted);
    const asked = { level, places, numbers: new Set(numbers), controller };
    this.under.push(asked);
    const span = TILE_PIXELS * 2 ** level;
    const [t0, t1] = [places[0]! * span, (places.at(-1)! + 1) * span];
    this.recording
      .tile(t0, t1, TILE_PIXELS * places.length, wanted, controller.signal)
      .then((tile) => {
        split(tile, places.length).forEach((part, i) => {
          this.keep(`${level}/${places[i]}`, part);
        });
        this.arrived();
      })
      .catch((error: unknown) => {
        if (controller.signal.aborted) return;
        this.failed = performance.now();
        this.arrived(error as Error);
      })
      .finally(() => {
        this.under = this.under.filter((one) => one !== asked);
      });
  }

  private keep(key: string, part: Tile): void {
    const known = this.kept.get(key);
    this.kept.delete(key);
    this.kept.set(key, known ? { ...known, lanes: [...known.lanes, ...part.lanes] } : part);
    this.bytes += bytesOf(part);
    for (const [oldest, tile] of this.kept) {
      if (this.bytes <= KEPT_BYTES || oldest === key) break;
      this.kept.delete(oldest);
      this.bytes -= bytesOf(tile);
    }
  }
}

function bytesOf({ lanes, width, states }: Tile): number {
  return lanes.length * width * (states + 10);
}

function lacking(tile: Tile | undefined, numbers: number[]): number[] {
  if (!tile) return numbers;
  const has = new Set(tile.lanes.map(({ lane }) => lane));
  return numbers.filter((number) => !has.has(number));
}
