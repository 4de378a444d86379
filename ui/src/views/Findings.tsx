/** View 'Findings': the answer as a picture and in words, then what to change, how that is known, and what it costs. */
import { Fragment } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { placeOf } from "../data/place";
import type { Recording } from "../data/source";
import type { Cost, Evidence, FigureData, Finding, Report, Section } from "../data/types";
import { aboutOf, addressOf, hasInstant, rowsAbout } from "../maths/about";
import { answerOf, bestOf, between, byCause, findingsOf } from "../maths/findings";
import { amount, counted, percent, shellWord } from "../maths/format";
import { lacksNonDrop, nonDrop } from "../maths/nondrop";
import { number, rowsOf, tableOf, text } from "../maths/rows";
import { go, hash, notice, openTimeline } from "../state/store";
import type { Views } from "./App";
import { Best } from "./Best";
import { MARKS, SEVERITIES } from "./severity";
import { WithoutLoss } from "./WithoutLoss";

/** What a change needs before it works, by the word of the report. */
const NEEDS: Record<string, string> = {
  nothing: "It takes effect at once.",
  reload: "It needs a reload of the kernel module with its VMs stopped, or a restart of the VM.",
  reboot: "It needs a reboot of that machine.",
  "outer level": "Only the owner of the level below can do it.",
};

export function Findings({ recording, Drawing }: { recording: Recording; Drawing: Views["Drawing"] }) {
  const { sections, problems } = recording.report;
  const first = sections[0];
  const findings = findingsOf(recording.report);
  return (
    <div class="page">
      {first && <Glance section={first} report={recording.report} Drawing={Drawing} />}
      {sections.map((section) => (
        <section class="answer" key={section.id}>
          {section !== first && <Question section={section} />}
          {section !== first && <Leading section={section} Drawing={Drawing} />}
          {section !== first && <Rest section={section} />}
          <Behind section={section} />
        </section>
      ))}
      <h2 class="heading">
        {findings.length > 0
          ? `What to change: ${SEVERITIES.flatMap((severity) => {
              const count = findings.filter((finding) => finding.severity === severity).length;
              return count > 0 ? [`${count} ${severity}`] : [];
            }).join(", ")}`
          : nothingFound(recording.report).heading}
      </h2>
      {findings.length === 0 && <p>{nothingFound(recording.report).why}</p>}
      {byCause(findings).map(({ finding, explained }) => (
        <Fragment key={finding.id}>
          <Card finding={finding} recording={recording} />
          {explained.length > 0 && (
            <section class="explained" aria-label={`What ${finding.id} explains`}>
              <p class="soft">It explains {counted(explained.length, "more finding")}:</p>
              {explained.map((finding) => (
                <Card key={finding.id} finding={finding} recording={recording} />
              ))}
            </section>
          )}
        </Fragment>
      ))}
      <Problems title="Damage in the input" problems={problems.filter(({ count }) => count > 0)} />
      <Problems title="About the input" problems={problems.filter(({ count }) => count === 0)} />
    </div>
  );
}

/** Sentences about what was read, below a heading; nothing where there are none. */
function Problems({ title, problems }: { title: string; problems: Report["problems"] }) {
  if (problems.length === 0) return null;
  return (
    <>
      <h2 class="heading">{title}</h2>
      <ul>
        {problems.map(({ text }) => (
          <li key={text}>{text}</li>
        ))}
      </ul>
    </>
  );
}

/** What it means that there is no finding: in a trace without vCPUs not that all is well, and of a fleet nothing about its hosts. */
function nothingFound(report: Report) {
  const ranked = rowsOf(tableOf(report, "fleet.ranked"));
  const ofHosts = ranked.reduce((sum, row) => sum + number(row, "findings"), 0);
  if (ofHosts > 0)
    return {
      heading: "No findings about the fleet as a whole",
      why: (
        <>
          View All numbers lists what was found on single hosts: {counted(ofHosts, "finding")}.{" "}
          <code>kvmscope explain {text(ranked[0]!, "rule")}</code> says what to run there.
        </>
      ),
    };
  const unknown = report.sections.flatMap((section) => section.unknown);
  const notJudged = unknown.filter(({ what }) => what === "rules_not_judged").map(({ text }) => ` ${text}`);
  const open = unknown.length > 0 ? " What is listed above as unknown could not be judged." : "";
  const examined =
    report.sections.some(({ id }) => id !== "flow") || rowsOf(tableOf(report, "flow.vcpus")).length > 0;
  if (examined)
    return {
      heading: "No findings",
      why: `No rule applies to what was recorded.${notJudged.join("") || open}`,
    };
  return {
    heading: "No rule could be checked",
    why: (
      <>
        This recording contains no exits of a vCPU, so no rule about exits could be checked. Run{" "}
        <code>kvmscope record</code> on the host while a VM runs: it records kvm_entry and kvm_exit.
      </>
    ),
  };
}

/** Whether a picture needs the whole width, or there is none: then what gives most back stands above it. */
function isWide(figure: FigureData | undefined): boolean {
  if (!figure || figure.drawing === "matrix" || figure.drawing === "topology") return true;
  return figure.drawing === "levels" && figure.columns.length > 1;
}

/** The picture that answers a section's question at a glance: its first. */
function Leading({ section, Drawing }: { section: Section; Drawing: Views["Drawing"] }) {
  const figure = section.figures[0];
  return figure ? <Drawing section={section.id} figure={figure} /> : null;
}

/** What is asked, small, and the answer in a sentence, large. */
function Question({ section: { question, summary } }: { section: Section }) {
  return (
    <>
      <h2 class="question">{question}</h2>
      <p class="summary first">{answerOf(summary).first}</p>
    </>
  );
}

/** What else the summary says. */
function Rest({ section }: { section: Section }) {
  const { rest } = answerOf(section.summary);
  return (
    <>
      {rest.map((paragraph) => (
        <p class="summary rest" key={paragraph}>
          {paragraph}
        </p>
      ))}
    </>
  );
}

/** The first screen: the answer, its picture, the number that matters most with what to run; then all else that is said. */
function Glance({
  section,
  report,
  Drawing,
}: {
  section: Section;
  report: Report;
  Drawing: Views["Drawing"];
}) {
  const wide = isWide(section.figures[0]);
  const hasBeside =
    bestOf(report).length > 0 ||
    answerOf(section.summary).rest.length > 0 ||
    nonDrop(report) !== null ||
    lacksNonDrop(report);
  return (
    <>
      <Question section={section} />
      {wide ? (
        <div class="glance stacked">
          <WithoutLoss report={report} />
          <Best report={report} />
          <Leading section={section} Drawing={Drawing} />
          <Rest section={section} />
        </div>
      ) : (
        <div class="glance">
          <div>
            <Leading section={section} Drawing={Drawing} />
          </div>
          {hasBeside && (
            <div>
              <WithoutLoss report={report} />
              <Best report={report} />
              <Rest section={section} />
            </div>
          )}
        </div>
      )}
    </>
  );
}

/** What the answer rests on, and what is not known. */
function Behind({ section }: { section: Section }) {
  return (
    <>
      {section.about && (
        <ul class="about">
          {section.about.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {section.unknown.length > 0 && (
        <details>
          <summary>What is unknown in this recording ({section.unknown.length})</summary>
          <ul>
            {section.unknown.map((unknown) => (
              <li key={unknown.text}>{unknown.text}</li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** Opens the timeline at the worst instant of what the evidence is about, else of what the finding is about. */
async function see(recording: Recording, finding: Finding, { about }: Evidence): Promise<void> {
  const place = (await placeOf(recording, about)) ?? (await placeOf(recording, aboutOf(finding)));
  if (!place) {
    go({ view: "timeline" }, true);
    notice.value = "No single instant shows this: it is about the whole recording.";
    return;
  }
  openTimeline(place, place.words, place.lanes);
}

/** What the change gives back, in a sentence. */
function back(gives: NonNullable<Finding["gives_back"]>): string {
  const unit = gives.unit.replace(/^share /, "");
  return gives.low > 0
    ? `It gives back some ${percent(gives.share)} ${unit}, ${between(gives)}. `
    : `It gives back up to ${percent(gives.high)} ${unit}. `;
}

function Card({ finding, recording }: { finding: Finding; recording: Recording }) {
  const { cost } = finding;
  const card = useRef<HTMLElement>(null);
  const open = hash.value.finding === finding.id;
  useEffect(() => {
    if (open) card.current?.scrollIntoView({ block: "center" });
  }, [open]);
  return (
    <article class={`finding ${finding.severity} ${open ? "open" : ""}`} id={finding.id} ref={card}>
      <header>
        <span class="severity">
          <i aria-hidden="true">{MARKS[finding.severity]}</i> {finding.severity}
        </span>
        <h3>{finding.title}</h3>
        <code class="rule">{finding.rule}</code>
      </header>
      {!finding.title.includes(finding.subject) && <p class="soft">About {finding.subject}</p>}
      {finding.why && <p>{finding.why}</p>}
      <div class="columns">
        <div>
          <h4>Seen</h4>
          <ul>
            {finding.evidence.map((evidence) => (
              <Seen key={evidence.what} evidence={evidence} finding={finding} recording={recording} />
            ))}
          </ul>
        </div>
        <div>
          <h4>{costTitle(cost)}</h4>
          {cost.value === null ? (
            <p>The cost is unknown.</p>
          ) : (
            <p class={`cost ${cost.kind}`}>
              <b>
                {isBound(cost) ? "up to " : ""}
                {cost.unit.startsWith("share")
                  ? `${(cost.value * 100).toFixed(1)} %`
                  : amount(cost.value, cost.unit)}
              </b>{" "}
              {cost.unit.replace(/^share/, "").trim()}
              <span class="kind">
                {cost.kind}
                {cost.low !== null && cost.high !== null && !isBound(cost)
                  ? `, between ${amount(cost.low, "")} and ${amount(cost.high, "")}`
                  : ""}
              </span>
            </p>
          )}
          <p class="soft">
            {finding.gives_back && finding.gives_back.share !== cost.value ? back(finding.gives_back) : ""}
            {finding.fix.length > 0
              ? `Run it ${place(finding.level)}. ${NEEDS[finding.needs] ?? `It needs: ${finding.needs}.`}`
              : `About ${place(finding.level).replace("at ", "")}.`}
          </p>
        </div>
      </div>
      <Commands title="Run" commands={finding.fix} />
      <Commands title="To undo" commands={finding.undo} />
      {isApplied(finding, recording) && (
        <p class="soft">
          <code>
            kvmscope apply {shellWord(finding.id)} --from {shellWord(recording.report.recording.path)}
          </code>{" "}
          on that machine makes this change, and <code>kvmscope undo</code> takes it back.
        </p>
      )}
      <p class="source">{finding.source}</p>
    </article>
  );
}

function Seen({
  evidence,
  finding,
  recording,
}: {
  evidence: Evidence;
  finding: Finding;
  recording: Recording;
}) {
  const rows = rowsAbout(evidence.about);
  return (
    <li>
      {evidence.what}{" "}
      {rows ? (
        <button type="button" class="link" onClick={() => go(addressOf(rows), true)}>
          {evidence.where}
        </button>
      ) : (
        <span class="soft">{evidence.where}</span>
      )}{" "}
      {recording.timeline && hasInstant(evidence.about) && (
        <button
          type="button"
          class="link"
          aria-label={`See it on the timeline: ${evidence.what}`}
          onClick={() => void see(recording, finding, evidence)}
        >
          see it
        </button>
      )}
    </li>
  );
}

/** Kinds of change that stay with people, because all VMs that use the module would have to be stopped. */
const PRINTED = ["ModuleOption"];

/** Whether `kvmscope apply` makes its changes: those of a machine that was not emulated, on that machine. */
function isApplied({ changes, needs }: Finding, { report }: Recording): boolean {
  const made = changes.length > 0 && changes.every(({ type }) => !PRINTED.includes(type));
  return made && needs !== "outer level" && report.recording.emulated === null;
}

/** Where the commands are to be run: a machine that is a guest itself calls whoever runs it `below L0`. */
function place(level: string): string {
  return level.startsWith("L") ? `at ${level}` : level;
}

/** The estimate is its own upper bound: the change may also save nothing. */
function isBound(cost: Cost): boolean {
  return cost.low === 0 && cost.high !== null && cost.value === cost.high && cost.high > 0;
}

/** `times the throughput` is what a change gives, not what the finding costs. */
function costTitle(cost: Cost): string {
  if (cost.unit.startsWith("times")) return "Would give";
  return cost.kind === "modelled" ? "Would save" : "Costs";
}

function Commands({ title, commands }: { title: string; commands: string[] }) {
  if (commands.length === 0) return null;
  const text = commands.join("\n");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      notice.value = "The commands are on the clipboard.";
    } catch {
      notice.value = "This browser does not let the page copy; select the text instead.";
    }
  };
  return (
    <div class="commands">
      <h4>{title}</h4>
      <pre tabIndex={0}>{text}</pre>
      <button type="button" onClick={copy} aria-label={`Copy: ${title}`}>
        Copy
      </button>
    </div>
  );
}
