/** Lists of lanes as an address has them: `0-15,20`. A host with hundreds of lanes names them in a few letters. */

/** Numbers in order, neighbours as a range. */
export function listOf(ids: number[]): string {
  const sorted = [...new Set(ids)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length; ) {
    let end = at;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(end > at ? `${sorted[at]}-${sorted[end]}` : `${sorted[at]}`);
    at = end + 1;
  }
  return parts.join(",");
}

const MOST = 8192;

/** What such a list names; what is no number is left out. */
export function lanesOf(list: string): number[] {
  return list.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    if (part === "" || !Number.isInteger(first) || !Number.isInteger(last) || last! - first! > MOST)
      return [];
    return Array.from({ length: Math.max(0, last! - first! + 1) }, (_, i) => first! + i);
  });
}

/** What a tile has: lanes by themselves, and groups of lanes as their mean. */
export interface Wanted {
  lanes: number[];
  means: number[][];
}

const MEAN = 2 ** 31;
const means = new Map<string, number>();

/** The number under which a tile has the mean of some lanes: one that no lane has. */
export function meanOf(lanes: number[]): number {
  const list = listOf(lanes);
  const known = means.get(list) ?? MEAN + means.size;
  means.set(list, known);
  return known;
}

/** The numbers of all that is wanted, in the order of a tile. */
export function numbersOf({ lanes, means }: Wanted): number[] {
  return [...lanes, ...means.map(meanOf)];
}
