import { formatReward } from '@palestra/kit/reward-text';
import { drawNumber } from './share-digits.ts';

/** Size of a preview image, pixels: what Slack and X show large. */
export const WIDTH = 1200;
export const HEIGHT = 630;
const MARGIN = 60;
/** Of the area of the lines: below the figures, right of the ends of the scale. */
const AREA = { left: 180, right: WIDTH - MARGIN, top: 220, bottom: HEIGHT - MARGIN };
/** Height of the figures: four fit side by side. */
const FIGURE_PX = { few: 84, many: 50 };
const SCALE_PX = 30;
/** Of the light theme (apps/dashboard/src/theme/tokens.css); the image has no theme of its reader. */
const PAPER = '#ffffff';
const LINE = '#e3e3e0';
const SCALE = '#6b6b66';
const COLOURS = ['#2f6f4f', '#b4552d', '#3d63a8', '#8a5aa8'];
/** Points of a line, at most; a screen shows no more. */
const MOST = 400;

/** What a preview image draws: lines over their own range of values, and the figure of each. It has no text of a tenant. */
export interface Chart {
  lines: readonly { figure: string; values: readonly (number | null)[] }[];
}

/** The chart as SVG. A line breaks at null. */
export function chartSvg({ lines }: Chart): string {
  const shown = lines.slice(0, COLOURS.length);
  const thinned = shown.map(({ values }) => thin(values));
  const values = thinned.flat().filter((value) => value !== null);
  const [low, high] = values.length === 0 ? [0, 1] : padded(Math.min(...values), Math.max(...values));
  const y = (value: number) => round(AREA.bottom - ((value - low) / (high - low)) * (AREA.bottom - AREA.top));
  const grid = [0, 1, 2, 3, 4]
    .map((i) => round(AREA.top + (i * (AREA.bottom - AREA.top)) / 4))
    .map((at) => `<path d="M${AREA.left} ${at}H${AREA.right}" stroke="${LINE}" stroke-width="2"/>`);
  const scale = values.length === 0 ? [] : [low, high].map((end) => endOfScale(end, y(end)));
  const drawn = thinned.map((line, at) => lineSvg(line, COLOURS[at]!, y));
  const parts = [figures(shown.map(({ figure }) => figure)), ...grid, ...scale, ...drawn];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}"><rect width="100%" height="100%" fill="${PAPER}"/>${parts.join('')}</svg>`;
}

/** The figures side by side, each in the colour of its line. */
function figures(texts: readonly string[]): string {
  const height = texts.length > 2 ? FIGURE_PX.many : FIGURE_PX.few;
  let at = MARGIN;
  return texts
    .map((text, i) => {
      const { svg, width } = drawNumber(text, height, COLOURS[i]!);
      const placed = `<g transform="translate(${at} ${MARGIN})">${svg}</g>`;
      at += width + 40;
      return placed;
    })
    .join('');
}

function endOfScale(value: number, y: number): string {
  const { svg, width } = drawNumber(formatReward(value), SCALE_PX, SCALE);
  return `<g transform="translate(${AREA.left - 24 - width} ${y - SCALE_PX / 2})">${svg}</g>`;
}

function lineSvg(line: readonly (number | null)[], colour: string, y: (value: number) => number): string {
  const x = (i: number) =>
    round(line.length < 2 ? (AREA.left + AREA.right) / 2 : AREA.left + (i * (AREA.right - AREA.left)) / (line.length - 1));
  const dots = line.length <= 40 ? line.flatMap((value, i) => (value === null ? [] : [`M${x(i)} ${y(value)}h0`])) : [];
  const path = line.map((value, i) => (value === null ? '' : `${i === 0 || line[i - 1] === null ? 'M' : 'L'}${x(i)} ${y(value)}`)).join('');
  const stroke = `fill="none" stroke="${colour}" stroke-linecap="round" stroke-linejoin="round"`;
  return `<path d="${path}" ${stroke} stroke-width="7"/><path d="${dots.join('')}" ${stroke} stroke-width="18"/>`;
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
