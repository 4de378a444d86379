/** Where the ends of pairs lie: the scale of base::figure::DumbbellGroup, so that every output draws one picture. */
import type { DumbbellGroup } from "../data/types";
import { type Scale, scaleOf } from "./scale";

export function dumbbellScale({ x, rows }: DumbbellGroup): Scale {
  const numbers = rows.flatMap(({ before, after }) => [before, after]);
  // What reaches beyond twice the largest number is cut there, or one unsure row would make all others points.
  const largest = Math.max(0, ...numbers);
  // Of one whole there is no more than all of it.
  const most = x.unit === "share" && largest <= 1 ? Math.min(1, largest * 2) : largest * 2;
  const least = Math.min(...numbers.filter((number) => number > 0)) / 2;
  const rims = rows
    .flatMap(({ low, high }) => (low === null || high === null ? [] : [low, high]))
    .map((rim) => Math.min(most, x.logarithmic ? Math.max(rim, least) : rim));
  // Of a logarithmic axis the first decade has nothing in it where something is 0, which is drawn at its beginning.
  const none = x.logarithmic && Number.isFinite(least) && numbers.some((number) => number <= 0);
  return scaleOf(x, [...numbers, ...rims, ...(none ? [least / 10] : [])]);
}
