/** How severe a finding is. Severity is a shape and a word: hue means level and nothing else. */
export const SEVERITIES = ["high", "medium", "low", "info"] as const;
export const MARKS = { high: "■", medium: "◧", low: "□", info: "○" };
