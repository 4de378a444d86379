/** The fills that all SVG pictures of the page share. */
import { PATTERN_SIZE, PATTERNS, strokeOf } from "../draw/patterns";
import { lookOf, STATE_NAMES } from "../draw/tokens";
import { theme } from "../state/store";

export function Patterns() {
  return (
    <svg id="patterns" width="0" height="0" aria-hidden="true">
      <defs>
        {STATE_NAMES.map((name) => {
          const { path, width } = PATTERNS[lookOf(name).pattern];
          return (
            <pattern
              id={`pat-${name}`}
              key={name}
              width={PATTERN_SIZE}
              height={PATTERN_SIZE}
              patternUnits="userSpaceOnUse"
            >
              <rect width={PATTERN_SIZE} height={PATTERN_SIZE} fill={`var(--state-${name})`} />
              {path && (
                <path d={path} stroke={strokeOf(name, theme.value)} stroke-width={width} fill="none" />
              )}
            </pattern>
          );
        })}
      </defs>
    </svg>
  );
}
