/** View 'All numbers': every Section's summary, figures and tables as they come; no question is known by name. With `only`, one Section. */
import type { FunctionComponent } from "preact";
import { useMemo } from "preact/hooks";
import type { Recording } from "../data/source";
import type { Cell, Column, Section, Table } from "../data/types";
import { amount, counted, duration, grouped, instant } from "../maths/format";
import { csv, matches, type Row, rowsOf, spanOf, tableOf } from "../maths/rows";
import type { Window } from "../maths/window";
import { go, hash, openTimeline } from "../state/store";
import type { Views } from "./App";
import type { useControls as UseControls } from "./Controls";
import { Figure } from "./Figure";
import { SortTable } from "./SortTable";
import { Filter } from "./TableBox";
import { useReport } from "./useReport";

/** Where nobody computes anew, a section stays as it was reported. */
const asReported: typeof UseControls = (_recording, section) => ({ section, controls: null });

/** What only a server has. */
interface OfServer {
  useControls: typeof UseControls;
  Events: FunctionComponent<{ recording: Recording }>;
}

export function Sections({
  recording,
  only,
  Drawing,
  ofServer,
}: {
  recording: Recording;
  Drawing: Views["Drawing"];
  only?: string;
  ofServer?: OfServer;
}) {
  const { report, note, window } = useReport(recording);
  const sections = report.sections.filter(({ id }) => !only || id === only);
  return (
    <div>
      {note && (
        <p class="note" role="status">
          {note}
        </p>
      )}
      {sections.map((section) => (
        <Whole
          key={section.id}
          section={section}
          recording={recording}
          window={window}
          Drawing={Drawing}
          useControls={ofServer?.useControls ?? asReported}
        />
      ))}
      {!only &&
        tableOf(report, "flow.events") &&
        (ofServer ? (
          <ofServer.Events recording={recording} />
        ) : (
          <p class="soft">A report file contains no single events; kvmscope serve shows them.</p>
        ))}
    </div>
  );
}

function Whole({
  section: reported,
  recording,
  window,
  Drawing,
  useControls,
}: {
  section: Section;
  Drawing: Views["Drawing"];
  recording: Recording;
  window: Window | null;
  useControls: typeof UseControls;
}) {
  const { section, controls } = useControls(recording, reported);
  const names = Object.keys(section.tables);
  const filled = names.filter((name) => section.tables[name]!.rows.length > 0);
  const empty = names.filter((name) => section.tables[name]!.rows.length === 0);
  const chosen = filled.find((name) => hash.value.table === `${section.id}.${name}`) ?? filled[0];
  return (
    <section>
      <h2 class="heading">{section.question}</h2>
      {controls}
      {controls && <p>{section.summary}</p>}
      {section.figures.map((figure) => (
        <Drawing key={figure.id} section={section.id} figure={figure} />
      ))}
      <div class="tabs" role="group" aria-label="Tables">
        {filled.map((name) => (
          <button
            type="button"
            key={name}
            aria-pressed={name === chosen}
            onClick={() => go({ table: `${section.id}.${name}` })}
          >
            {name.replaceAll("_", " ")} <span>{section.tables[name]!.rows.length}</span>
          </button>
        ))}
      </div>
      {chosen && (
        <Numbers
          key={chosen}
          name={chosen}
          table={section.tables[chosen]!}
          recording={recording}
          section={section.id}
          window={window}
        />
      )}
      {empty.length > 0 && (
        <p class="soft">Tables without a row: {empty.map((name) => name.replaceAll("_", " ")).join(", ")}.</p>
      )}
    </section>
  );
}

function Numbers({
  name,
  table,
  recording,
  section,
  window,
}: {
  name: string;
  table: Table;
  recording: Recording;
  section: string;
  window: Window | null;
}) {
  const filter = hash.value.q ?? "";
  const { kept, columns } = useMemo(() => {
    const kept = rowsOf(table).filter((row) => matches(row, filter));
    const columns = table.columns.filter(
      (column) => column.key || kept.some((row) => row[column.name] !== 0 && row[column.name] !== null),
    );
    return { kept, columns };
  }, [table, filter]);
  const arrow = recording.tableAddress(section, name, "arrow", window);
  return (
    <Figure
      id={name}
      title={name.replaceAll("_", " ")}
      picture={false}
      csv={() =>
        csv(
          table.columns.map((column) => column.name),
          kept.map((row) => table.columns.map((column) => row[column.name] ?? null)),
        )
      }
      tools={
        <>
          <Filter />
          {arrow && (
            <a class="link" href={arrow} download={`${name}.arrow`}>
              Arrow
            </a>
          )}
        </>
      }
      caption={`${filter ? `${grouped(kept.length)} of ${counted(table.rows.length, "row")}, filtered by "${filter}"` : counted(kept.length, "row")}.${columns.length < table.columns.length ? ` Not shown: ${counted(table.columns.length - columns.length, "column")} with nothing but zeros or unknown values.` : ""}`}
    >
      <SortTable
        title={`Table ${name}`}
        columns={columns}
        rows={kept}
        print={print}
        {...(recording.timeline && kept.some(spanOf) ? { see } : {})}
      />
    </Figure>
  );
}

/** Opens the timeline at a row that says when it was. */
function see(row: Row): (() => void) | null {
  const span = spanOf(row);
  return span && (() => openTimeline(span, `${duration(span.t1 - span.t0)} from ${instant(span.t0)} on.`));
}

function print(cell: Cell, column: Column): string {
  if (cell === null) return "–";
  if (typeof cell !== "number") return String(cell);
  return column.key || column.name === "tid" ? String(cell) : amount(cell, column.unit);
}
