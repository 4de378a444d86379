/** A logarithmic scale of whole decades around `values`; it gives a value's place on it, from 0 to 1. */
export function logScale(values: number[]): (value: number) => number {
  const powers = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  const from = powers.length ? Math.floor(Math.min(...powers)) : 0;
  const to = Math.max(from + 1, powers.length ? Math.ceil(Math.max(...powers)) : 1);
  return (value) => (value > 0 ? Math.min(1, Math.max(0, (Math.log10(value) - from) / (to - from))) : 0);
}
