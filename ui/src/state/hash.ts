/**
 * The whole view in the address: `#r=svm-linux&view=timeline&t0=..&t1=..`. A pasted link reopens it; keys this page
 * does not know are kept.
 */

export type Hash = Record<string, string>;

export function parseHash(hash: string): Hash {
  const out: Hash = {};
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) out[key] = value;
  return out;
}

/** Empty values leave the address; `undefined` in a patch removes a key. */
export function printHash(hash: Hash): string {
  const kept = Object.entries(hash).filter(([, value]) => value !== "");
  return kept.length > 0 ? `#${new URLSearchParams(kept)}` : "";
}

export function patched(hash: Hash, patch: Record<string, string | number | null | undefined>): Hash {
  const out = { ...hash };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || value === undefined || value === "") delete out[key];
    else out[key] = String(value);
  }
  return out;
}

export function numberOf(hash: Hash, key: string): number | null {
  const value = hash[key];
  if (value === undefined || value === "") return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
