/** The wall of a measured service chain: gauges with their ceilings, and what they are held against. */
import type { ComponentChildren } from "preact";
import type { RateLook } from "../data/live";
import { duration, instant } from "../maths/format";
import { COUNTED, figures, gbps, ratesAt, trialWords } from "../maths/rates";
import { csv } from "../maths/rows";
import { Figure } from "./Figure";
import { GaugeWall } from "./Gauge";
import { LongTable } from "./TableBox";

interface Props {
  id: string;
  looks: RateLook[];
  index: number;
  /** Newer samples should be there by now. */
  stale?: boolean;
  note?: string;
  tools: ComponentChildren;
}

export function Rates({ id, looks, index, stale = false, note, tools }: Props) {
  const now = looks[index]!;
  const { series, index: own, looks: ofTrial } = ratesAt(looks, index);
  const read = Math.max(...looks.map((look) => look.read_ns));
  return (
    <Figure
      id={id}
      title={trialWords(now.trial)}
      {...(note ? { note } : {})}
      picture={false}
      csv={() => table(looks)}
      caption={`Mpps and Gb/s of ${COUNTED}, over ${duration(now.to_ns - now.from_ns)} up to ${instant(now.to_ns, 1e8)}; ${figures(now.sent_pps / 1e6)} Mpps are offered. The thin marks on a bar are the lowest and the highest sample of this trial, the line below it has all ${ofTrial.length}. The thick mark is the modelled ceiling, diamonds are published rates that are on the bar. Reading the counters took at most ${duration(read)}.`}
      tools={tools}
    >
      <p class="counted">{COUNTED}</p>
      <GaugeWall series={series} index={own} stale={stale} />
      <Held look={now} />
    </Figure>
  );
}

/** What the gauges are held against, in numbers. */
function Held({ look }: { look: RateLook }) {
  const { ceiling, published, trial } = look;
  if (!ceiling && published.length === 0)
    return (
      <p class="soft">
        No ceiling is known yet, and nothing is published of this pattern and size: gauges stand alone.
      </p>
    );
  const cells = (pps: number, vnfs: number) => (
    <>
      <td class="number">{figures(pps / 1e6)}</td>
      <td class="number">{figures(gbps(pps, trial))}</td>
      <td class="number">{figures(pps / vnfs / 1e6)}</td>
    </>
  );
  return (
    <LongTable
      title="What the gauges are held against"
      count={1 + published.length}
      head={
        <tr>
          <th>Held against</th>
          <th class="number">Mpps</th>
          <th class="number">Gb/s</th>
          <th class="number">Mpps of each VNF</th>
          <th>Where it comes from</th>
        </tr>
      }
      row={(i) => {
        if (i === 0)
          return ceiling ? (
            <tr key="ceiling">
              <td>
                <b>modelled</b>: {ceiling.resource} binds
              </td>
              {cells(ceiling.system_pps, trial.vnfs)}
              <td>{ceiling.from}</td>
            </tr>
          ) : (
            <tr key="ceiling">
              <td colSpan={5}>No ceiling: it takes earlier trials of two sizes to tell one.</td>
            </tr>
          );
        const it = published[i - 1]!;
        return (
          <tr key={it.point}>
            <td>
              <b>published</b>: {it.design}, {it.vnfs} VMs
            </td>
            {cells(it.system_pps, it.vnfs)}
            <td>{it.source}</td>
          </tr>
        );
      }}
    />
  );
}

function table(looks: RateLook[]): string {
  const most = Math.max(...looks.map((look) => look.vnfs_pps.length));
  const each = Array.from({ length: most }, (_, vnf) => vnf);
  return csv(
    ["trial", "to_ns", "sent_pps", "received_pps", "system_pps", ...each.map((vnf) => `vnf_${vnf + 1}_pps`)],
    looks.map((look) => [
      trialWords(look.trial),
      look.to_ns,
      look.sent_pps,
      look.received_pps,
      look.system_pps,
      ...each.map((vnf) => look.vnfs_pps[vnf] ?? null),
    ]),
  );
}
