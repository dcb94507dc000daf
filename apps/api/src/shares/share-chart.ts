/** Size of a preview image, pixels: what Slack and X show large. */
export const WIDTH = 1200;
export const HEIGHT = 630;
const MARGIN = 60;
/** Of the light theme (apps/dashboard/src/theme/tokens.css); the image has no theme of its reader. */
const PAPER = '#ffffff';
const LINE = '#e3e3e0';
const COLOURS = ['#2f6f4f', '#b4552d', '#3d63a8', '#8a5aa8'];
/** Points of a line, at most; a screen shows no more. */
const MOST = 400;

/** What a preview image draws: lines over their own range of values. It has figures only, no text of a tenant. */
export interface Chart {
  lines: readonly (readonly (number | null)[])[];
}

/** The chart as SVG. A line breaks at null. */
export function chartSvg({ lines }: Chart): string {
  const thinned = lines.slice(0, COLOURS.length).map(thin);
  const values = thinned.flat().filter((value) => value !== null);
  const [low, high] = values.length === 0 ? [0, 1] : padded(Math.min(...values), Math.max(...values));
  const y = (value: number) => round(HEIGHT - MARGIN - ((value - low) / (high - low)) * (HEIGHT - 2 * MARGIN));
  const grid = [0, 1, 2, 3, 4]
    .map((i) => round(MARGIN + (i * (HEIGHT - 2 * MARGIN)) / 4))
    .map((at) => `<path d="M${MARGIN} ${at}H${WIDTH - MARGIN}" stroke="${LINE}" stroke-width="2"/>`);
  const drawn = thinned.flatMap((line, at) => {
    const x = (i: number) => round(line.length < 2 ? WIDTH / 2 : MARGIN + (i * (WIDTH - 2 * MARGIN)) / (line.length - 1));
    const dots = line.length <= 40 ? line.flatMap((value, i) => (value === null ? [] : [`M${x(i)} ${y(value)}h0`])) : [];
    const path = line
      .map((value, i) => (value === null ? '' : `${i === 0 || line[i - 1] === null ? 'M' : 'L'}${x(i)} ${y(value)}`))
      .join('');
    const stroke = `fill="none" stroke="${COLOURS[at]}" stroke-linecap="round" stroke-linejoin="round"`;
    return [`<path d="${path}" ${stroke} stroke-width="7"/>`, `<path d="${dots.join('')}" ${stroke} stroke-width="18"/>`];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}"><rect width="100%" height="100%" fill="${PAPER}"/>${grid.join('')}${drawn.join('')}</svg>`;
}

function padded(low: number, high: number): [number, number] {
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

/** Means of neighbours, so that a line has at most `MOST` points. Values beyond drawing count as missing. */
function thin(line: readonly (number | null)[]): (number | null)[] {
  const clean = line.map((value) => (value !== null && Number.isFinite(value) && Math.abs(value) < 1e15 ? value : null));
  const size = Math.ceil(clean.length / MOST);
  if (size < 2) return clean;
  return Array.from({ length: Math.ceil(clean.length / size) }, (_, i) => {
    const part = clean.slice(i * size, (i + 1) * size).filter((value) => value !== null);
    return part.length === 0 ? null : part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

const round = (value: number): number => Math.round(value * 10) / 10;
