/** View 'Compared': the answer of `kvmscope compare` as a story: what changed, what was set up differently, where it comes from, is it real. */
import { useMemo } from "preact/hooks";
import { type Cell, type Column, type Section, type Table, vcpuLanes } from "../../data/types";
import { amount, counted, grouped } from "../../maths/format";
import { csv, matches, rowsOf } from "../../maths/rows";
import { go, hash } from "../../state/store";
import { Drawing } from "../Drawing";
import { Empty, Figure } from "../Figure";
import { SortTable } from "../SortTable";
import { Filter } from "../TableBox";
import { BothTimelines } from "./BothTimelines";
import { Names, type Sides } from "./Names";
import { sectionOf, useCompared } from "./useCompared";

/** A longer paragraph is no headline. */
const HEADLINE = 180;
/** Figures that stand before the timelines: what changed. */
const FIRST = ["dumbbells", "tests", "carried"];
/** Tables that the story has a place of its own for. */
const PLACED = ["configuration"];

export function Story({ before, after }: Sides) {
  const { value: compared, error } = useCompared(before, after);
  if (error) {
    return (
      <Empty title="These two cannot be compared">
        {error} The other views show {before.id} alone, or both where they can.
      </Empty>
    );
  }
  const section = sectionOf(compared);
  if (!compared)
    return (
      <p class="loading" role="status">
        Comparing {before.id} with {after.id} …
      </p>
    );
  if (!section)
    return <Empty title="These two cannot be compared">They have nothing in common that was measured.</Empty>;
  const [headline, ...paragraphs] = section.summary.split(/\n\n+/);
  const first = section.figures.filter(({ id }) => FIRST.includes(id));
  const others = section.figures.filter(({ id }) => !FIRST.includes(id));
  const configuration = section.tables.configuration;
  const tables = Object.entries(section.tables).filter(
    ([name, table]) => !PLACED.includes(name) && table.rows.length > 0,
  );
  return (
    <div class="compared">
      <section class="answer">
        <h2 class="question">{section.question}</h2>
        <p class={headline!.length <= HEADLINE ? "summary headline" : "summary"}>{headline}</p>
        <Names before={before} after={after} />
        {paragraphs.length > 0 && (
          <details>
            <summary>All of it in words</summary>
            {paragraphs.map((paragraph) => (
              <p key={paragraph}>{paragraph}</p>
            ))}
          </details>
        )}
        {section.findings.map(({ id, title, why }) => (
          <p class="note" key={id}>
            <b>{title}.</b> {why}
          </p>
        ))}
      </section>
      <SetUp table={configuration} unknown={section.unknown} />
      {first.map((figure) => (
        <Drawing key={figure.id} figure={figure} section={section.id} />
      ))}
      {[before, after].some(({ timeline }) => vcpuLanes(timeline).length > 0) && (
        <BothTimelines before={before} after={after} />
      )}
      <div class="beside">
        {others.map((figure) => (
          <Drawing key={figure.id} figure={figure} section={section.id} />
        ))}
      </div>
      <Tables tables={tables} />
      {section.about && (
        <details class="soft">
          <summary>How it was compared</summary>
          <ul>
            {section.about.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </details>
      )}
      {section.unknown.length > 0 && (
        <details class="soft">
          <summary>What is unknown ({section.unknown.length})</summary>
          <ul>
            {section.unknown.map(({ text }) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** What was set up differently: rows, or why nobody can tell. */
function SetUp({ table, unknown }: { table: Table | undefined; unknown: Section["unknown"] }) {
  if (table && table.rows.length > 0)
    return <Rows name="configuration" title="What was set up differently" table={table} />;
  const why = unknown.find(({ what }) => what === "configuration");
  return (
    <section>
      <h2 class="heading">What was set up differently</h2>
      <p>{why?.text ?? "No setting of a host that both recordings contain differs."}</p>
    </section>
  );
}

function Tables({ tables }: { tables: [string, Table][] }) {
  if (tables.length === 0) return null;
  const [name, table] = tables.find(([name]) => hash.value.table === `compare.${name}`) ?? tables[0]!;
  return (
    <section>
      <h2 class="heading">The numbers</h2>
      <div class="tabs" role="group" aria-label="Tables">
        {tables.map(([other, { rows }]) => (
          <button
            type="button"
            key={other}
            aria-pressed={other === name}
            onClick={() => go({ table: `compare.${other}` })}
          >
            {other.replaceAll("_", " ")} <span>{rows.length}</span>
          </button>
        ))}
      </div>
      <Rows key={name} name={name} title={name.replaceAll("_", " ")} table={table} />
    </section>
  );
}

function Rows({ name, title, table }: { name: string; title: string; table: Table }) {
  const filter = hash.value.q ?? "";
  const kept = useMemo(() => rowsOf(table).filter((row) => matches(row, filter)), [table, filter]);
  const columns = useMemo(
    () =>
      table.columns.filter(
        ({ name, key }) => key || rowsOf(table).some((row) => row[name] !== null && row[name] !== ""),
      ),
    [table],
  );
  const caption = filter
    ? `${grouped(kept.length)} of ${counted(table.rows.length, "row")}, filtered by "${filter}".`
    : `${counted(kept.length, "row")}.`;
  return (
    <Figure
      id={`compare-table-${name}`}
      title={title}
      picture={false}
      tools={<Filter />}
      csv={() =>
        csv(
          table.columns.map(({ name }) => name),
          kept.map((row) => table.columns.map(({ name }) => row[name] ?? null)),
        )
      }
      caption={`${caption} A dash: not known, or it has no such number.`}
    >
      <SortTable title={`Table ${title}`} columns={columns} rows={kept} print={print} />
    </Figure>
  );
}

function print(cell: Cell, { unit }: Column): string {
  if (cell === null || cell === "") return "–";
  if (typeof cell !== "number") return String(cell);
  // Shares of less than nothing are differences in points.
  if (unit === "share") return cell < 0 ? `\u2212${amount(-cell, unit)}` : amount(cell, unit);
  if (unit === "ns" && cell < 0) return `\u2212${amount(-cell, unit)}`;
  return Math.abs(cell) > 0 && Math.abs(cell) < 0.1 ? cell.toPrecision(2) : amount(cell, unit);
}
