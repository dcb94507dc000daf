import { useEffect, useRef, useState } from 'react';
import { token, useTheme } from '../theme/theme.ts';

const HEIGHT = 16;

/** Px between the lines of a hatch, along a row. */
const HATCH = 4;

/** The colour of a solve rate, from orange (0) over grey to blue (1). */
function colour(rate: number): string {
  const end = rate >= 0.5 ? token('good') : token('bad');
  return `color-mix(in oklab, ${end} ${Math.round(Math.abs(rate - 0.5) * 200)}%, ${token('line-strong')})`;
}

/** Grey lines over the whole height of a cell without a rate. They continue in the next cell, so that narrow cells show them, too. */
function hatch(pen: CanvasRenderingContext2D, left: number, width: number): void {
  pen.save();
  pen.beginPath();
  pen.rect(left, 0, width, HEIGHT);
  pen.clip();
  pen.beginPath();
  for (let at = Math.floor((left - HEIGHT) / HATCH) * HATCH; at < left + width; at += HATCH) {
    pen.moveTo(at, HEIGHT);
    pen.lineTo(at + HEIGHT, 0);
  }
  pen.strokeStyle = token('unscored');
  pen.stroke();
  pen.restore();
}

/**
 * One cell per step with the solve rate of a task, as colour and as height. A step without scored rollouts is hatched; a step without rollouts
 * is empty.
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
  /** The width after a change of size, such as that of the window. */
  const [changed, setChanged] = useState(0);
  useEffect(() => {
    const element = canvas.current!;
    const observer = new ResizeObserver(() => {
      if (Math.trunc(element.clientWidth * devicePixelRatio) !== element.width) setChanged(element.clientWidth);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
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
      const left = (step - from) * cell;
      const wide = Math.max(1, cell - (cell > 4 ? 1 : 0));
      if (rate === null) return hatch(pen, left, wide);
      const height = 3 + rate * (HEIGHT - 3);
      pen.fillStyle = colour(rate);
      pen.fillRect(left, HEIGHT - height, wide, height);
    });
  }, [steps, rates, from, to, theme, changed]);
  return <canvas ref={canvas} role="img" aria-label={label} className="block h-[16px] w-full" />;
}
