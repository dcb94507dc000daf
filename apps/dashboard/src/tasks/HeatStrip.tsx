import { useEffect, useRef } from 'react';
import { token, useTheme } from '../theme/theme.ts';

const HEIGHT = 16;

/** Solve rates from orange (none) over grey to blue (all), as the tokens have them; null is hatched grey. */
function colour(rate: number | null): string {
  if (rate === null) return token('unscored');
  const towards = rate >= 0.5 ? token('good') : token('bad');
  return `color-mix(in oklab, ${towards} ${Math.round(Math.abs(rate - 0.5) * 200)}%, ${token('line-strong')})`;
}

/**
 * One cell a step, from `from` to `to`: how much of a task was solved. Height is the rate, too, so that colour is not the only channel; a step
 * at which it was not tried stays empty.
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
    steps.forEach((step, i) => {
      if (step < from || step > to) return;
      const rate = rates[i] ?? null;
      const height = rate === null ? HEIGHT / 4 : 3 + rate * (HEIGHT - 3);
      pen.fillStyle = colour(rate);
      pen.fillRect((step - from) * cell, HEIGHT - height, Math.max(1, cell - (cell > 4 ? 1 : 0)), height);
    });
  }, [steps, rates, from, to, theme]);
  return <canvas ref={canvas} role="img" aria-label={label} className="block h-[16px] w-full" />;
}
