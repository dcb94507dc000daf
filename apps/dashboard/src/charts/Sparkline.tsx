import { formatReward } from '../format/number.ts';

const HEIGHT = 20;
const PAD = 2;

/** An SVG path with one line per run of known values; gaps stay empty. */
function paths(values: readonly (number | null)[], low: number, high: number, width: number): string {
  const stepX = (width - 2 * PAD) / Math.max(1, values.length - 1);
  const y = (value: number) => (high === low ? HEIGHT / 2 : HEIGHT - PAD - ((value - low) / (high - low)) * (HEIGHT - 2 * PAD));
  let pen = false;
  let path = '';
  values.forEach((value, i) => {
    if (value === null) {
      pen = false;
      return;
    }
    path += `${pen ? 'L' : 'M'}${(PAD + i * stepX).toFixed(1)} ${y(value).toFixed(1)}`;
    pen = true;
  });
  return path;
}

/** A curve of 20 px height. Its title and ARIA label name the figure (`label`) and its range. */
export function Sparkline({ values, label, width = 100 }: { values: readonly (number | null)[]; label: string; width?: number }) {
  const known = values.filter((value): value is number => value !== null);
  if (known.length === 0) return <span className="block h-[20px]" style={{ width }} />;
  const low = Math.min(...known);
  const high = Math.max(...known);
  const path = paths(values, low, high, width);
  const last = known.at(-1)!;
  const text = `${label}: ${known.length} points from ${formatReward(known[0])} to ${formatReward(last)}, between ${formatReward(low)} and ${formatReward(high)}`;
  return (
    <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={text} className="flex-none text-good">
      <title>{text}</title>
      {known.length === 1 ? (
        <circle cx={width / 2} cy={HEIGHT / 2} r="2" fill="currentColor" />
      ) : (
        <path d={path} fill="none" stroke="currentColor" strokeWidth="1.25" strokeLinejoin="round" />
      )}
    </svg>
  );
}
