/** How severe a finding is: a shape and a word, and a colour that nobody needs to see. */
export const SEVERITIES = ["high", "medium", "low", "info"] as const;
export const MARKS = { high: "■", medium: "◧", low: "□", info: "○" };
