/** The frame of every picture: a title, the answer in words, the picture, and ways to take it along. */

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { alone, copy, fileName, frameOf, pngOfSvg, save, svgText } from "../draw/export";
import { fillOf } from "../draw/tokens";
import { notice } from "../state/store";

interface Props {
  id: string;
  title: string;
  /** What is not as one would think: still being read, or of another span. */
  note?: string;
  caption: ComponentChildren;
  /** The picture as vectors, where it is no SVG on the page. */
  svg?: () => string;
  /** The numbers behind the picture. */
  csv?: () => string;
  tools?: ComponentChildren;
  children: ComponentChildren;
  /** False where there is nothing to take along. */
  picture?: boolean;
}

export function Figure({ id, title, note, caption, svg, csv, tools, children, picture = true }: Props) {
  const body = useRef<HTMLDivElement>(null);
  const vectors = (): string => {
    const drawn = [...(body.current?.querySelectorAll<SVGSVGElement>("svg.picture") ?? [])];
    const said = body.current?.parentElement?.querySelector("figcaption")?.textContent ?? "";
    return alone(svg?.() ?? svgText(drawn), frameOf(title, said, body.current));
  };
  const take = async (kind: "copy" | "png" | "svg" | "csv") => {
    try {
      if (kind === "csv")
        notice.value = save(new Blob([csv!()], { type: "text/csv" }), fileName(id, kind, body.current));
      else if (kind === "svg")
        notice.value = save(
          new Blob([vectors()], { type: "image/svg+xml" }),
          fileName(id, kind, body.current),
        );
      else {
        const png = await pngOfSvg(vectors());
        notice.value = kind === "copy" ? await copy(png, title) : save(png, fileName(id, kind, body.current));
      }
    } catch (error) {
      notice.value = `This failed: ${(error as Error).message}`;
    }
  };
  return (
    <figure class="figure" aria-labelledby={`${id}-title`}>
      <header>
        <h2 id={`${id}-title`}>{title}</h2>
        <div class="tools">
          {tools}
          {picture && (
            <>
              <button type="button" onClick={() => take("copy")} aria-label={`Copy ${title}`}>
                Copy
              </button>
              <button type="button" onClick={() => take("png")} aria-label={`Save ${title} as PNG`}>
                PNG
              </button>
              <button type="button" onClick={() => take("svg")} aria-label={`Save ${title} as SVG`}>
                SVG
              </button>
            </>
          )}
          {csv && (
            <button type="button" onClick={() => take("csv")} aria-label={`Save ${title} as CSV`}>
              CSV
            </button>
          )}
        </div>
      </header>
      {note && (
        <p class="note" role="status">
          {note}
        </p>
      )}
      <div class="figure-body" ref={body}>
        {children}
      </div>
      <figcaption>{caption}</figcaption>
    </figure>
  );
}

/** Nothing to draw, and what would bring it. */
export function Empty({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

/** A patch of a state's colour and pattern with its name. */
export function Swatch({ state }: { state: string }) {
  return (
    <svg class="swatch" width="14" height="14" aria-hidden="true">
      <rect width="14" height="14" fill={fillOf(state)} stroke="var(--soft)" stroke-width="0.5" />
    </svg>
  );
}
