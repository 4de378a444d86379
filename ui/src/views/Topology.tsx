/** A machine: boxes in boxes (node, core, CPU) with what runs there, placements side by side where there is room. */
import type { CpuBox, Panel } from "../data/types";

export function Topology({ panels }: { panels: Panel[] }) {
  return (
    <div class="machines">
      {panels.map((panel) => (
        <section key={panel.title} aria-label={panel.title}>
          <h4>{panel.title}</h4>
          {panel.nodes.map((node) => (
            <div key={node.title} class="box">
              {node.title}
              <div class="cores">
                {node.cores.map((core) => (
                  <div key={core[0]?.cpu} class="box">
                    {core.map((cpu) => (
                      <Cpu key={cpu.cpu} cpu={cpu} />
                    ))}
                  </div>
                ))}
              </div>
            </div>
          ))}
          {panel.links.map((link) => (
            <p key={link} class="away">
              {link}
            </p>
          ))}
        </section>
      ))}
    </div>
  );
}

function Cpu({ cpu }: { cpu: CpuBox }) {
  return (
    <div class={cpu.contended ? "box contended" : "box"}>
      <b>{cpu.cpu}</b> {cpu.chips.join(", ")}
      {cpu.contended && " !"}
    </div>
  );
}
