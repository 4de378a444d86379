/** Things by machines as a table. */
import type { MatrixData } from "../data/types";
import { csv } from "./rows";

/** All of it, for a spreadsheet. */
export function matrixCsv({ columns, rows }: MatrixData): string {
  return csv(
    ["feature", ...columns, "what_it_is", "findings"],
    rows.map((row) => [row.label, ...row.cells, row.about, row.findings.join(" ")]),
  );
}
