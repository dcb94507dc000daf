import type { RolloutOutline } from '@palestra/protocol';
import { useEffect, useRef } from 'react';
import { useTheme } from '../theme/theme.ts';
import { errorOf, rewardOf, type TranscriptItem } from './transcript.ts';

const WIDTH = 14;

const MAX_ROW_PX = 6;

interface MinimapData {
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  decisive: number;
  failures: ReadonlyMap<number, string>;
}

interface MinimapProps extends MinimapData {
  selected: number;
  select: (row: number) => void;
}

const colourTokenOf = ({ outline, decisive, failures }: MinimapData, item: TranscriptItem, row: number): string => {
  if (item.kind === 'gap') return '--infrastructure';
  if (row === decisive) return (rewardOf(outline, item) ?? 0) < 0 ? '--bad' : '--good';
  const failure = failures.get(item.anchor);
  if (failure === 'environment' || failure === 'infrastructure') return `--${failure}`;
  if (item.kind === 'call') return errorOf(outline, item) ? '--policy' : '--role-tool';
  return { user_message: '--role-user', assistant_message: '--role-assistant', reasoning: '--line-strong' }[item.type] ?? '--role-system';
};

/** If several rows share a pixel, the colour with the highest priority is drawn. */
const priorities = ['--line-strong', '--role-system', '--role-assistant', '--role-user', '--role-tool', '--policy', '--environment'];
const priorityOf = (token: string) => (priorities.indexOf(token) === -1 ? priorities.length : priorities.indexOf(token));

function draw(canvas: HTMLCanvasElement, data: MinimapData): void {
  const { items, outline } = data;
  const { clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  canvas.width = WIDTH * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  if (!context || items.length === 0) return;
  context.scale(scale, scale);
  const rowPx = Math.min(MAX_ROW_PX, height / items.length);
  const barPx = Math.max(1, rowPx - 1);
  const tokens = new Map<number, string>();
  const rewards = new Map<number, string>();
  items.forEach((item, row) => {
    const y = Math.floor(row * rowPx);
    const token = colourTokenOf(data, item, row);
    if (!tokens.has(y) || priorityOf(token) > priorityOf(tokens.get(y)!)) tokens.set(y, token);
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

/** The whole rollout, one coloured line per row. The outline beside it has the same content as text. */
export function Minimap({ outline, items, decisive, failures, selected, select }: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = canvas.current!;
    // The observer also reports the first size, after the first layout.
    const observer = new ResizeObserver(() => draw(element, { outline, items, decisive, failures }));
    observer.observe(element);
    return () => observer.disconnect();
  }, [outline, items, decisive, failures, theme]);
  const onClick = (event: React.MouseEvent) => {
    const { top, height } = canvas.current!.getBoundingClientRect();
    const rowPx = Math.min(MAX_ROW_PX, height / items.length);
    select(Math.max(0, Math.min(items.length - 1, Math.floor((event.clientY - top) / rowPx))));
  };
  return (
    <div className="relative cursor-pointer" aria-hidden="true" onClick={onClick}>
      <canvas ref={canvas} className="absolute inset-0 size-full" />
      {selected >= 0 && (
        <div
          className="pointer-events-none absolute right-0 left-0 -mt-px h-[2px] bg-accent"
          style={{ top: `min(${(100 * selected) / items.length}%, ${selected * MAX_ROW_PX}px)` }}
        />
      )}
    </div>
  );
}
