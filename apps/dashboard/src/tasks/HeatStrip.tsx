import { useEffect, useRef } from 'react';
import { token, useTheme } from '../theme/theme.ts';

const HEIGHT = 16;
/** Of what was tried and not scored. */
const UNSCORED_HEIGHT = 6;

/** Solve rates from orange (none) over grey to blue (all), as the tokens have them. */
function colour(rate: number): string {
  const towards = rate >= 0.5 ? token('good') : token('bad');
  return `color-mix(in oklab, ${towards} ${Math.round(Math.abs(rate - 0.5) * 200)}%, ${token('line-strong')})`;
}

/** Diagonal lines, as `.hatched` draws them. */
function hatch(pen: CanvasRenderingContext2D): CanvasPattern {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 4;
  const lines = tile.getContext('2d')!;
  lines.strokeStyle = token('unscored');
  lines.lineWidth = 1.4;
  lines.beginPath();
  for (const x of [-4, 0, 4]) {
    lines.moveTo(x, 4);
    lines.lineTo(x + 4, 0);
  }
  lines.stroke();
  return pen.createPattern(tile, 'repeat')!;
}

/**
 * One cell a step, from `from` to `to`: how much of a task was solved. Height is the rate, too, so that colour is not the only channel; what
 * was not scored is hatched, and a step at which it was not tried stays empty.
 */
export function HeatStrip({
  steps,
  rates,
  from,
  to,
  label,
}: {
  steps: readonly number[];
  rates: readonly (number | null)[];
  from: number;
  to: number;
  label: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = canvas.current!;
    const width = element.clientWidth;
    const scale = devicePixelRatio;
    element.width = width * scale;
    element.height = HEIGHT * scale;
    const pen = element.getContext('2d')!;
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, HEIGHT);
    const cell = width / (to - from + 1);
    const hatching = hatch(pen);
    steps.forEach((step, i) => {
      if (step < from || step > to) return;
      const rate = rates[i] ?? null;
      const height = rate === null ? UNSCORED_HEIGHT : 3 + rate * (HEIGHT - 3);
      const box = [(step - from) * cell, HEIGHT - height, Math.max(1, cell - (cell > 4 ? 1 : 0)), height] as const;
      pen.fillStyle = rate === null ? hatching : colour(rate);
      pen.fillRect(...box);
    });
  }, [steps, rates, from, to, theme]);
  return <canvas ref={canvas} role="img" aria-label={label} className="block h-[16px] w-full" />;
}
