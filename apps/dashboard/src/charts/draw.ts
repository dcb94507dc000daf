import type uPlot from 'uplot';
import { token } from '../theme/theme.ts';

export { columnEdges } from './columns.ts';

/** A colour of tokens.css with this opacity. */
export const faded = (name: string, alpha: number): string => token(name).replace(/\s*(?:\/[^)]*)?\)$/, ` / ${alpha})`);

/** Fills a cell given in values. Edges are rounded to pixels so that neighbours neither overlap nor leave a gap. */
export function fillCell(plot: uPlot, [left, right]: readonly [number, number], low: number, high: number): void {
  const x0 = Math.round(plot.valToPos(left, 'x', true));
  const x1 = Math.round(plot.valToPos(right, 'x', true));
  const y0 = Math.round(plot.valToPos(high, 'y', true));
  const y1 = Math.round(plot.valToPos(low, 'y', true));
  plot.ctx.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
}

/** Clips drawing to the plotting area. */
export function clipped(plot: uPlot, draw: (ctx: CanvasRenderingContext2D) => void): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx);
  ctx.restore();
}

/** A round mark, hollow for an incomplete point. */
export function mark(plot: uPlot, x: number, y: number, colour: string, hollow: boolean): void {
  const { ctx } = plot;
  const scale = devicePixelRatio;
  // A dashed line leaves its dash pattern set.
  ctx.setLineDash([]);
  ctx.beginPath();
  ctx.arc(plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true), 2.5 * scale, 0, 2 * Math.PI);
  ctx.lineWidth = 1.5 * scale;
  ctx.strokeStyle = colour;
  ctx.fillStyle = hollow ? token('paper-0') : colour;
  ctx.fill();
  ctx.stroke();
}

export interface EndLabel {
  text: string;
  /** In the unit of y. */
  y: number;
  colour: string;
}

const LINE_PX = 12;

/** Names at the right ends of lines, moved apart where they would overlap. */
export function endLabels(plot: uPlot, labels: readonly EndLabel[]): void {
  const { ctx, bbox } = plot;
  const scale = devicePixelRatio;
  const placed = labels.map((label) => ({ ...label, at: plot.valToPos(label.y, 'y', true) })).toSorted((a, b) => a.at - b.at);
  const step = LINE_PX * scale;
  let next = bbox.top + step / 2;
  for (const label of placed) next = (label.at = Math.max(label.at, next)) + step;
  let last = bbox.top + bbox.height - step / 4;
  for (const label of placed.toReversed()) last = (label.at = Math.min(label.at, last)) - step;
  ctx.save();
  ctx.font = `450 ${11 * scale}px ${token('font-interface')}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  for (const { text, colour, at } of placed) {
    ctx.fillStyle = colour;
    ctx.fillText(text, bbox.left + bbox.width + 5 * scale, at);
  }
  ctx.restore();
}
