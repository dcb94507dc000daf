import { useEffect, useRef } from 'react';
import type { Outline } from '../data/rollout.ts';
import { useTheme } from '../theme/theme.ts';
import { errorOf, rewardOf, type TranscriptItem } from './transcript.ts';

const WIDTH = 14;

interface MinimapProps {
  outline: Outline;
  items: readonly TranscriptItem[];
  selected: number;
  decisive: number;
  failures: ReadonlyMap<number, string>;
  select: (row: number) => void;
}

const tokenOf = ({ outline, decisive, failures }: MinimapProps, item: TranscriptItem, row: number): string => {
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

function draw(canvas: HTMLCanvasElement, props: MinimapProps): void {
  const { items, outline } = props;
  const { clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  canvas.width = WIDTH * scale;
  canvas.height = height * scale;
  const context = canvas.getContext('2d');
  if (!context || items.length === 0) return;
  context.scale(scale, scale);
  const style = getComputedStyle(canvas);
  const rowPx = Math.max(1, Math.min(6, height / items.length));
  const tokens = new Map<number, string>();
  const rewards = new Map<number, number>();
  items.forEach((item, row) => {
    const y = Math.floor(Math.min(row * (height / items.length), row * 6));
    const token = tokenOf(props, item, row);
    if (!tokens.has(y) || loud(token) > loud(tokens.get(y)!)) tokens.set(y, token);
    const reward = rewardOf(outline, item);
    if (reward) rewards.set(y, reward);
  });
  for (const [y, token] of tokens) {
    context.fillStyle = style.getPropertyValue(token);
    context.fillRect(2, y, 7, Math.max(1, rowPx - 1));
  }
  for (const [y, reward] of rewards) {
    context.fillStyle = style.getPropertyValue(reward > 0 ? '--good' : '--bad');
    context.fillRect(10, y, 3, Math.max(1, rowPx - 1));
  }
  if (props.selected >= 0) {
    context.fillStyle = style.getPropertyValue('--accent');
    context.fillRect(0, Math.floor(Math.min(props.selected * (height / items.length), props.selected * 6)) - 1, WIDTH, 2);
  }
}

/** The whole rollout at a glance, every row a line of its colour; the outline beside it says the same in words. */
export function Minimap(props: MinimapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = canvas.current!;
    const redraw = () => draw(element, props);
    redraw();
    const observer = new ResizeObserver(redraw);
    observer.observe(element);
    return () => observer.disconnect();
  }, [props, theme]);
  const onClick = (event: React.MouseEvent) => {
    const { top, height } = canvas.current!.getBoundingClientRect();
    const rowPx = Math.min(6, height / props.items.length);
    props.select(Math.max(0, Math.min(props.items.length - 1, Math.floor((event.clientY - top) / rowPx))));
  };
  return <canvas ref={canvas} aria-hidden="true" onClick={onClick} className="h-full w-[14px] cursor-pointer" />;
}
