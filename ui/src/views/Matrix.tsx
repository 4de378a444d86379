/** What each machine says of each feature: a shape and a word in each cell, and the finding that it calls for. */
import type { MatrixData, Standing } from "../data/types";
import { counted } from "../maths/format";
import { go } from "../state/store";

/** Drawn open; the others wait behind a line that says how many they are. */
const OPEN = 14;
const GLYPHS: Record<Standing, string> = { on: "■", off: "□", absent: "–", unknown: "?" };

export function Matrix({ matrix }: { matrix: MatrixData }) {
  const more = matrix.rows.slice(OPEN);
  return (
    <>
      <Rows matrix={{ ...matrix, rows: matrix.rows.slice(0, OPEN) }} />
      {more.length > 0 && (
        <details>
          <summary>{counted(more.length, "more feature")}</summary>
          <Rows matrix={{ ...matrix, rows: more }} />
        </details>
      )}
    </>
  );
}

function Rows({ matrix: { columns, rows } }: { matrix: MatrixData }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Features">
      <table class="numbers matrix">
        <thead>
          <tr>
            <th scope="col">Feature</th>
            {columns.map((column) => (
              <th scope="col" key={column}>
                {column}
              </th>
            ))}
            <th scope="col">What it is</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.label}>
              <th scope="row">{row.label.replaceAll("_", " ")}</th>
              {row.cells.map((standing, i) => (
                <td key={columns[i]} class={standing ?? ""}>
                  {standing && (
                    <>
                      <i aria-hidden="true">{GLYPHS[standing]}</i> {standing}
                    </>
                  )}
                </td>
              ))}
              <td class="what">
                {firstOfEach(row.findings).map(([rule, id]) => (
                  <button
                    type="button"
                    class="link"
                    key={id}
                    onClick={() => go({ view: "findings", finding: id }, true)}
                  >
                    {rule}
                  </button>
                ))}{" "}
                {row.about}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The rules of findings, each with the first of its findings. */
function firstOfEach(ids: string[]): [string, string][] {
  const found = new Map<string, string>();
  for (const id of ids) {
    const rule = id.split("@")[0]!;
    if (!found.has(rule)) found.set(rule, id);
  }
  return [...found];
}
