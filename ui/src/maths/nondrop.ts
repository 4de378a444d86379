/** The rate at which a chain still lost nothing (NDR), as a search bounded it. */
import type { Report } from "../data/types";
import { counted, packetsPerSecond } from "./format";
import { number, rowsOf, tableOf, text } from "./rows";

export interface NonDrop {
  /** The highest rate that held, `at least` where the search met no loss above it. */
  much: string;
  /** Between which rates the first loss lies, or why only one is known. */
  interval: string;
  /** Of what. */
  chain: string;
  /** Chains that were searched as well. */
  others: string;
}

/** That of the chain that held most; `null` where none was searched for. */
export function nonDrop(report: Report): NonDrop | null {
  const found = rowsOf(tableOf(report, "datapath.bounds")).filter(
    (row) => row.goal === "ndr" && typeof row.lower_pps === "number",
  );
  const [best] = [...found].sort((a, b) => number(b, "lower_pps") - number(a, "lower_pps"));
  if (!best) return null;
  const lower = number(best, "lower_pps");
  const upper = typeof best.upper_pps === "number" ? best.upper_pps : null;
  const more = found.length - 1;
  return {
    much: `${upper === null ? "at least " : ""}${packetsPerSecond(lower)}`,
    interval:
      upper === null
        ? text(best, "ended")
        : `no loss at ${exact(lower)}, loss at ${exact(upper)} packets a second`,
    chain: `${text(best, "design")}, ${counted(number(best, "vnfs"), "VNF")}, ${number(best, "size_bytes")} bytes`,
    others: more > 0 ? `${counted(more, "more chain")} in table bounds of All numbers.` : "",
  };
}

/** Whether rates were measured and nobody looked for the one without loss. */
export function lacksNonDrop(report: Report): boolean {
  const measured = rowsOf(tableOf(report, "datapath.rates")).some((row) => text(row, "kind") === "measured");
  return measured && nonDrop(report) === null;
}

/** Both bounds lie within a per cent of each other: three figures would make them one. */
function exact(pps: number): string {
  return Math.round(pps).toLocaleString("en-US");
}
