/** View 'All numbers': every Section's summary, figures and tables as they come; no question is known by name. With `only`, one Section. */
import type { FunctionComponent } from "preact";
import { useMemo } from "preact/hooks";
import { lanesOfRow } from "../data/cpus";
import { wordsOf } from "../data/place";
import type { Recording } from "../data/source";
import type { Cell, Column, Section, Table } from "../data/types";
import { distinct } from "../maths/figures";
import { amount, counted, grouped, instant } from "../maths/format";
import { constants, csv, matches, rowsOf, spanOf, TIMELINE, tableOf } from "../maths/rows";
import type { Window } from "../maths/window";
import { go, hash, openTimeline } from "../state/store";
import type { Views } from "./App";
import type { useControls as UseControls } from "./Controls";
import { Figure } from "./Figure";
import { type See, SortTable, titleOf } from "./SortTable";
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
      {distinct(section.figures).map((figure) => (
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
  const { kept, columns, same, empty, isSeen } = useMemo(() => {
    const all = rowsOf(table);
    const kept = all.filter((row) => matches(row, filter));
    const same = constants(table);
    const isSeen = recording.timeline !== null && all.some(spanOf);
    const others = table.columns.filter(
      (column) => !same.includes(column) && !(isSeen && TIMELINE.includes(column.name)),
    );
    const columns = others.filter(
      (column) => column.key || kept.some((row) => row[column.name] !== 0 && row[column.name] !== null),
    );
    return { kept, columns, same, empty: others.length - columns.length, isSeen };
  }, [table, filter, recording]);
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
      caption={`${filter ? `${grouped(kept.length)} of ${counted(table.rows.length, "row")}, filtered by "${filter}"` : counted(kept.length, "row")}.${empty > 0 ? ` Not shown: ${counted(empty, "column")} with nothing but zeros or unknown values.` : ""}`}
    >
      {same.length > 0 && (
        <p class="soft">
          In all rows:{" "}
          {same
            .map(
              (column) =>
                `${titleOf(column.name)} ${print(table.rows[0]![table.columns.indexOf(column)]!, column)}`,
            )
            .join(", ")}
          .
        </p>
      )}
      <SortTable
        title={`Table ${name}`}
        columns={columns}
        rows={kept}
        print={print}
        {...(isSeen ? { see: seeOn(recording) } : {})}
      />
    </Figure>
  );
}

/** Opens the timeline at a row that says when it was, on its CPU if it says that. */
function seeOn(recording: Recording): See {
  return (row) => {
    const span = spanOf(row);
    if (!span) return null;
    const what = wordsOf(span);
    const show = () => openTimeline(span, what, lanesOfRow(recording.timeline!, row));
    return { when: instant(span.t0), what, show };
  };
}

function print(cell: Cell, column: Column): string {
  if (cell === null) return "–";
  if (typeof cell !== "number") return String(cell);
  // Nobody groups the digits of what is a name, such as a thread.
  const isName = column.name === "tid" || (column.key && /^(count)?$/.test(column.unit));
  return isName ? String(cell) : amount(cell, column.unit);
}
