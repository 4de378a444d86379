/**
 * Tiles that were asked for once are kept: 512 pixels each, a power of two of nanoseconds per pixel, so that every
 * zoom of a gesture falls on the same few tiles.
 *
 * While a finer tile is on its way, the finest coarser one that covers its place stands in.
 */
import type { Recording } from "./source";
import type { Tile } from "./tile";

export const TILE_PIXELS = 512;
const KEPT = 96;

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

export class TileCache {
  private readonly kept = new Map<string, Tile>();
  private readonly under = new Map<string, AbortController>();

  constructor(
    private readonly recording: Recording,
    private readonly arrived: (error?: Error) => void,
  ) {}

  /** Tiles to draw for a window, coarse ones first; asks for what is missing and aborts what is stale. */
  window(t0: number, t1: number, nsPerPixel: number): Tile[] {
    const level = levelFor(nsPerPixel);
    const wanted = placesOf(level, t0, t1);
    const near = [wanted[0]! - 1, ...wanted, wanted.at(-1)! + 1];
    const end = this.recording.timeline?.span.to_ns ?? 0;
    const span = TILE_PIXELS * 2 ** level;
    const keys = new Set(near.map((place) => `${level}/${place}`));
    for (const [key, controller] of this.under) {
      if (keys.has(key)) continue;
      controller.abort();
      this.under.delete(key);
    }
    for (const place of near) {
      if (place >= 0 && place * span < end) this.ask(level, place);
    }
    const missing = wanted.some((place) => place * span < end && !this.kept.has(`${level}/${place}`));
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

  private ask(level: number, place: number): void {
    const key = `${level}/${place}`;
    if (this.kept.has(key) || this.under.has(key)) return;
    const controller = new AbortController();
    this.under.set(key, controller);
    const span = TILE_PIXELS * 2 ** level;
    this.recording
      .tile(place * span, (place + 1) * span, TILE_PIXELS, controller.signal)
      .then((tile) => {
        this.kept.set(key, tile);
        for (const oldest of this.kept.keys()) {
          if (this.kept.size <= KEPT) break;
          this.kept.delete(oldest);
        }
        this.arrived();
      })
      .catch((error: unknown) => {
        if (!controller.signal.aborted) this.arrived(error as Error);
      })
      .finally(() => {
        if (this.under.get(key) === controller) this.under.delete(key);
      });
  }
}
