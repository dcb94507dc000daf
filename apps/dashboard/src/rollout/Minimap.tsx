import type { RolloutOutline } from '@palestra/protocol';
import { useEffect, useRef } from 'react';
import { useTheme } from '../theme/theme.ts';
import { errorOf, rewardOf, type TranscriptItem } from './transcript.ts';

const WIDTH = 14;

/** Pixels of a row at most. */
const MAX_ROW = 6;

/** What the bars are drawn of. */
interface Bars {
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  decisive: number;
  failures: ReadonlyMap<number, string>;
}

interface MinimapProps extends Bars {
  selected: number;
  select: (row: number) => void;
}

const tokenOf = ({ outline, decisive, failures }: Bars, item: TranscriptItem, row: number): string => {
  if (item.kind === 'gap') return '--infrastructure';
  if (row === decisive) return (rewardOf(outline, item) ?? 0) < 0 ? '--bad' : '--good';
  const failure = failures.get(item.anchor);
  if (failure === 'environment' || failure === 'infrastructure') return `--${failure}`;
  if (item.kind === 'call') return errorOf(outline, item) ? '--policy' : '--role-tool';
  return { user_message: '--role-user', assistant_message: '--role-assistant', reasoning: '--line-strong' }[item.type] ?? '--role-system';
};

/** Louder colours win where several rows share a pixel. */
const loudness = ['--line-strong', '--role-system', '--role-assistant', '--role-user', '--role-tool', '--policy', '--environment'];
const loud = (token: string) => (loudness.indexOf(token) === -1 ? loudness.length : loudness.indexOf(token));

function draw(canvas: HTMLCanvasElement, bars: Bars): void {
  const { items, outline } = bars;
  const { clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  canvas.width = WIDTH * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  if (!context || items.length === 0) return;
  context.scale(scale, scale);
  const rowPx = Math.min(MAX_ROW, height / items.length);
  const barPx = Math.max(1, rowPx - 1);
  const tokens = new Map<number, string>();
  const rewards = new Map<number, string>();
  items.forEach((item, row) => {
    const y = Math.floor(row * rowPx);
    const token = tokenOf(bars, item, row);
    if (!tokens.has(y) || loud(token) > loud(tokens.get(y)!)) tokens.set(y, token);
    const reward = rewardOf(outline, item);
    if (reward) rewards.set(y, reward > 0 ? '--good' : '--bad');
  });
  const style = getComputedStyle(canvas);
  const colours = new Map([...new Set([...tokens.values(), ...rewards.values()])].map((token) => [token, style.getPropertyValue(token)]));
  const fill = (marks: ReadonlyMap<number, string>, x: number, width: number) => {
    for (const [y, token] of marks) {
      context.fillStyle = colours.get(token)!;
      context.fillRect(x, y, width, barPx);
    }
  };
  fill(tokens, 2, 7);
  fill(rewards, 10, 3);
}

/** The whole rollout at a glance, every row a line of its colour; the outline beside it says the same in words. */
export function Minimap({ outline, items, decisive, failures, selected, select }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = canvas.current!;
    // It tells the first size too, once the frame is laid out.
    const observer = new ResizeObserver(() => draw(element, { outline, items, decisive, failures }));
    observer.observe(element);
    return () => observer.disconnect();
  }, [outline, items, decisive, failures, theme]);
  const onClick = (event: React.MouseEvent) => {
    const { top, height } = canvas.current!.getBoundingClientRect();
    const rowPx = Math.min(MAX_ROW, height / items.length);
    select(Math.max(0, Math.min(items.length - 1, Math.floor((event.clientY - top) / rowPx))));
  };
  return (
    <div className="relative cursor-pointer" aria-hidden="true" onClick={onClick}>
      <canvas ref={canvas} className="absolute inset-0 size-full" />
      {selected >= 0 && (
        <div
          className="pointer-events-none absolute right-0 left-0 -mt-px h-[2px] bg-accent"
          style={{ top: `min(${(100 * selected) / items.length}%, ${selected * MAX_ROW}px)` }}
        />
      )}
    </div>
  );
}
