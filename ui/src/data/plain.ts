/**
 * Text of traced machines without characters that change how their surroundings read: names of threads and VMs are chosen
 * there. Bidirectional marks reverse what stands beside them, characters without a width make two names look alike. As in
 * base::plain of the program; control characters are escaped in JSON, and a browser draws none.
 */
const MISLEADING = /[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Replaces them in JSON before it is parsed, so that no view meets one. */
export function plain(json: string): string {
  return json.replace(MISLEADING, "\ufffd");
}
