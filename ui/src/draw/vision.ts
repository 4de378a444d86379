/**
 * How colours look to other eyes, to test that neighbouring states stay apart.
 *
 * Dichromats: the matrices of Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color
 * vision deficiency", IEEE TVCG 15(6), 2009, severity 1.0, on linear RGB. Greyscale: relative luminance (WCAG 2.2).
 * Differences: CIE76 in L*a*b*, D65; about 2.3 is just noticeable.
 */

export type Vision = "normal" | "protanopia" | "deuteranopia" | "tritanopia" | "greyscale";
type Triple = [number, number, number];

const MATRICES: Record<Vision, [Triple, Triple, Triple]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
  greyscale: [
    [0.2126, 0.7152, 0.0722],
    [0.2126, 0.7152, 0.0722],
    [0.2126, 0.7152, 0.0722],
  ],
};

export const VISIONS = Object.keys(MATRICES) as Vision[];

function linear(hex: string): Triple {
  return [1, 3, 5].map((at) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as Triple;
}

const times = (matrix: Triple[], [r, g, b]: Triple): Triple =>
  matrix.map((row) => row[0] * r + row[1] * g + row[2] * b) as Triple;

/** L*a*b* of a colour as these eyes see it. */
export function seen(hex: string, vision: Vision): Triple {
  const rgb = times(MATRICES[vision], linear(hex)).map((it) => Math.min(1, Math.max(0, it))) as Triple;
  const xyz = times(
    [
      [0.4124564, 0.3575761, 0.1804375],
      [0.2126729, 0.7151522, 0.072175],
      [0.0193339, 0.119192, 0.9503041],
    ],
    rgb,
  );
  const white = [0.95047, 1, 1.08883];
  const [x, y, z] = xyz.map((it, i) => {
    const share = it / white[i]!;
    return share > 216 / 24389 ? Math.cbrt(share) : ((24389 / 27) * share + 16) / 116;
  }) as Triple;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

export function difference(one: string, other: string, vision: Vision): number {
  const a = seen(one, vision);
  const b = seen(other, vision);
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}
