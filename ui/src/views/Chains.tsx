/** View 'Chains': what happens inside one exit of L2, to scale; the median, the worst, and two side by side. */
import { picksWithin } from "../data/picks";
import type { Recording } from "../data/source";
import type { ChainInFull } from "../data/types";
import { counted, duration, grouped, instant, runs } from "../maths/format";
import { disturbance, heading } from "../maths/ladder";
import { csv } from "../maths/rows";
import type { Window } from "../maths/window";
import { go, hash, show } from "../state/store";
import { Empty, Figure } from "./Figure";
import { Ladder } from "./Ladder";
import { useAnswer } from "./useAnswer";
import { useWindow } from "./useReport";

const LISTED = 60;

export function Chains({ recording, other }: { recording: Recording; other: Recording | null }) {
  const { reason = "", order = "cost" } = hash.value;
  const sort = order === "time" || order === "exits" ? order : "cost";
  const window = useWindow();
  const page = useAnswer(
    () => recording.chains({ ...window, reason, sort, descending: sort !== "time", limit: LISTED }),
    [recording, reason, sort, window?.t0, window?.t1],
  );
  const asked = hash.value.chain === undefined ? page.value?.chains[0]?.id : Number(hash.value.chain);
  const open = useAnswer(async () => {
    if (asked === undefined || !Number.isInteger(asked)) return null;
    const worst = await full(recording, asked, window);
    // Nothing was chosen yet: the median chain shows more than the worst one.
    if (hash.value.chain !== undefined || worst.picks.median === null || worst.picks.median === worst.id)
      return worst;
    return full(recording, worst.picks.median, window).catch(() => worst);
  }, [recording, asked, hash.value.chain, window?.t0, window?.t1]);
  const second = useAnswer(async () => {
    if (/^\d+$/.test(hash.value.chain2 ?? "")) return (other ?? recording).chain(Number(hash.value.chain2));
    if (!other || !open.value) return null;
    const alike = (await other.chains({ reason: open.value.reason, limit: 1 })).chains[0];
    const any = alike ?? (await other.chains({ limit: 1 })).chains[0];
    if (!any) return null;
    const found = await other.chain(any.id);
    return found.picks.median === null ? found : other.chain(found.picks.median);
  }, [recording, other, hash.value.chain2, open.value?.id]);
  const wrong = hash.value.chain !== undefined && !/^\d+$/.test(hash.value.chain);
  if (wrong) {
    return (
      <Empty title="There is no such chain">
        The address has chain={hash.value.chain}; chains are numbered from 0.{" "}
        <button type="button" onClick={() => go({ chain: null })}>
          Show the chains
        </button>
      </Empty>
    );
  }
  const error = page.error ?? open.error;
  if (error) return <Empty title="The chains cannot be read">{error}</Empty>;
  if (page.value && page.value.total === 0 && window && hash.value.chain === undefined) {
    return <Empty title="No chain in this window">Clear or move the window to see others.</Empty>;
  }
  if (page.value && page.value.total === 0 && !reason && !window) {
    return (
      <Empty title="No chain in this recording">
        No exit of L2 was reflected to L1. Run <code>kvmscope record</code> at L0 while an L2 guest runs: it
        records kvm_nested_vmexit_inject and kvm_nested_vmenter, the events that chains are built from.
      </Empty>
    );
  }
  const all = [open.value, second.value].filter((chain): chain is ChainInFull => chain !== null);
  const states = recording.timeline?.states ?? [];
  const statesOf = (i: number) => (i === 1 && other ? (other.timeline?.states ?? states) : states);
  const longest = Math.max(1, ...all.map((chain) => chain.to_ns - chain.from_ns));
  const reasons = [...new Set(page.value?.chains.map((chain) => chain.reason) ?? [])];
  return (
    <div class="chains">
      {all.map((chain, i) => (
        <Figure
          key={`${i}/${chain.id}`}
          id={`chain-${chain.id}`}
          title={heading(chain)}
          csv={() =>
            csv(
              ["from_ns", "to_ns", "state", "detail"],
              chain.slices.map((s) => [s.from_ns, s.to_ns, statesOf(i)[s.state]?.name ?? "", s.detail]),
            )
          }
          tools={<Picks chain={chain} to={i === 0 ? "chain" : "chain2"} alone={all.length === 1} />}
          caption={sentence(chain, i === 1 && other ? other.id : null, all.length > 1)}
        >
          <Ladder chain={chain} states={statesOf(i)} full_ns={longest} />
        </Figure>
      ))}
      <section class="chain-list" aria-label="Chains">
        <header>
          <h2>{page.value ? titleOf(recording, page.value.total, window !== null) : "Chains"}</h2>
          <div class="tools">
            <select
              aria-label="Reason"
              value={reason}
              onChange={(event) => go({ reason: event.currentTarget.value, chain: null })}
            >
              <option value="">all reasons</option>
              {[...new Set([...reasons, ...(reason ? [reason] : [])])].map((it) => (
                <option key={it}>{it}</option>
              ))}
            </select>
            <select
              aria-label="Order"
              value={sort}
              onChange={(event) => go({ order: event.currentTarget.value })}
            >
              <option value="cost">most expensive first</option>
              <option value="exits">most exits first</option>
              <option value="time">by time</option>
            </select>
          </div>
        </header>
        <ol>
          {page.value?.chains.map((chain) => (
            <li key={chain.id}>
              <button
                type="button"
                aria-pressed={open.value?.id === chain.id}
                onClick={() => go({ chain: chain.id }, true)}
              >
                <b>{chain.reason}</b>
                <span>{chain.cost_ns === null ? "end not recorded" : duration(chain.cost_ns)}</span>
                <span>{counted(chain.exits, "exit")}</span>
                <span>{instant(chain.from_ns, 1e5)}</span>
                {disturbance(chain) && <span class="flag">{disturbance(chain)}</span>}
              </button>
            </li>
          ))}
        </ol>
        {page.value && page.value.total > LISTED && <p class="soft">The first {LISTED} are listed.</p>}
        {recording.chainsHeld !== null && (
          <p class="soft">
            A report file contains the median, p99 and worst chain of each reason and the most expensive ones;
            kvmscope serve shows all.
          </p>
        )}
      </section>
    </div>
  );
}

/** `68 of 43,249 chains` where a file has only some of them. */
function titleOf(recording: Recording, total: number, narrow: boolean): string {
  const { timeline, chainsHeld } = recording;
  const all = timeline?.lanes.reduce((sum, lane) => sum + lane.chains, 0) ?? total;
  const found =
    chainsHeld !== null && chainsHeld < all
      ? `${grouped(total)} of ${counted(all, "chain")}`
      : counted(total, "chain");
  return narrow ? `${found} in this window` : found;
}

/** A chain with its slices; its picks are those of the window, where there is one. */
async function full(recording: Recording, id: number, window: Window | null): Promise<ChainInFull> {
  const chain = await recording.chain(id);
  return window ? { ...chain, picks: await picksWithin(recording, chain, window) } : chain;
}

function Picks({ chain, to, alone }: { chain: ChainInFull; to: "chain" | "chain2"; alone: boolean }) {
  const { picks } = chain;
  const button = (title: string, id: number | null) => (
    <button
      type="button"
      key={title}
      disabled={id === null}
      aria-pressed={id === chain.id}
      onClick={() => go({ [to]: id })}
    >
      {title}
    </button>
  );
  return (
    <>
      {button("median", picks.median)}
      {button("p99", picks.p99)}
      {button("worst", picks.worst)}
      {button("cheaper", picks.previous)}
      {button("more expensive", picks.next)}
      {alone && (
        <button
          type="button"
          disabled={picks.worst === null}
          onClick={() => go({ chain: chain.id, chain2: picks.worst })}
        >
          beside the worst
        </button>
      )}
      {to === "chain2" && (
        <button type="button" onClick={() => go({ chain2: null, b: null })}>
          close
        </button>
      )}
      <button
        type="button"
        onClick={() => {
          const rim = (chain.to_ns - chain.from_ns) * 0.1;
          go({ view: "timeline" }, true);
          show({ t0: chain.from_ns - rim, t1: chain.to_ns + rim });
        }}
      >
        timeline
      </button>
    </>
  );
}

function sentence(chain: ChainInFull, of: string | null, scaled: boolean): string {
  const steps = runs(chain.sequence)
    .map(({ name, count }) => (count > 1 ? `${name} ×${count}` : name))
    .join(", ");
  const first = chain.exits > chain.sequence.length ? `the first ${chain.sequence.length} are ` : "";
  const why = disturbance(chain);
  const doubt = why
    ? ` ${why === "L1 halted" ? "L1 halted during it" : `${why} to another vCPU`}, so this is not the cost of one exit.`
    : "";
  const cost = chain.cost_ns === null ? "Its end was not recorded" : `It cost ${duration(chain.cost_ns)}`;
  const place = `${of ? `In ${of}: ` : ""}L2 exited with ${chain.reason} at ${instant(chain.from_ns)}.`;
  return `${place} ${cost}, and L1 needed ${counted(chain.exits, "exit")} of its own to handle it${steps ? `: ${first}${steps}` : ""}.${doubt}${chain.left_out ? ` Not drawn: ${counted(chain.left_out, "slice")} at its end.` : ""}${scaled ? " Both ladders share one time scale." : ""}`;
}
