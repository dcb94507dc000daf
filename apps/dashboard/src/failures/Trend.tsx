import { plural } from '../format/number.ts';

const WIDTH = 200;
const HEIGHT = 28;

interface Bin {
  from: number;
  to: number;
  rollouts: number;
}

/** Bars of the share of rollouts by steps, as high as the largest share. */
export function Trend({ values, bins, label }: { values: readonly number[]; bins: readonly Bin[]; label: string }) {
  if (bins.length < 2) return null;
  const shares = bins.map(({ rollouts }, at) => (rollouts === 0 ? 0 : (values[at] ?? 0) / rollouts));
  const most = Math.max(...shares);
  const width = WIDTH / bins.length;
  const peak = shares.indexOf(most);
  const { from, to } = bins[peak]!;
  const text = `${label}: most at ${from === to ? `step ${from}` : `steps ${from} to ${to}`}, ${values[peak]} of ${plural(bins[peak]!.rollouts, 'rollout')}`;
  return (
    <svg
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={text}
      className="block max-w-full text-ink-3"
    >
      <title>{text}</title>
      <path d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} stroke="var(--line-strong)" />
      {shares.map((share, at) => (
        <rect
          key={bins[at]!.from}
          x={at * width + 0.5}
          width={Math.max(1, width - 1)}
          y={HEIGHT - 1 - (share / (most || 1)) * (HEIGHT - 2)}
          height={(share / (most || 1)) * (HEIGHT - 2)}
          fill="currentColor"
        />
      ))}
    </svg>
  );
}
