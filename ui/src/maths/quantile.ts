/** Distributions: quantiles, and places on log axes. */

/** The value at a share, from exact quantiles in their order: that of the next one that is known. */
export function shareAt(shares: [number, number][], share: number): number {
  return (shares.find(([known]) => known >= share - 1e-9) ?? shares.at(-1))?.[1] ?? 0;
}

/** Place of a value between two others, both logged, 0 to 1. */
export function logPlace(value: number, from: number, to: number): number {
  if (to <= from) return 0;
  return Math.min(1, Math.max(0, Math.log(Math.max(from, value) / from) / Math.log(to / from)));
}

/** A quantile's place on an axis of nines: 0 is at 0, 0.9 at a third, 0.99 at two, 0.999 at three. */
export function ninesPlace(share: number, nines: number): number {
  return Math.min(1, -Math.log10(Math.max(1e-12, 1 - share)) / nines);
}

/** Powers of ten inside `[from, to]`. */
export function decades(from: number, to: number): number[] {
  const out: number[] = [];
  for (let power = Math.ceil(Math.log10(from) - 1e-9); 10 ** power <= to * 1.0001; power++)
    out.push(10 ** power);
  return out;
}

/** Powers of ten, with 2 and 5 times them where there are few; both ends where fewer than two of these lie between. */
export function marks(from: number, to: number): number[] {
  const tens = decades(from, to);
  if (tens.length > 3) return tens;
  const all = decades(from / 10, to).flatMap((ten) => [ten, 2 * ten, 5 * ten]);
  const within = all.filter((mark) => mark >= from && mark <= to);
  return within.length > 1 ? within : [from, to];
}
