import type { RolloutRow } from '@palestra/protocol';
import { useMemo } from 'react';
import { formatCount, formatShare } from '../format/number.ts';
import { Stop } from '../frame/Stop.tsx';
import { ChartPanel } from './Chart.tsx';

const shown = 6;

/** Why rollouts stopped, by share; live ones and unknown reasons are named as such. */
export function StopBars({ rows }: { rows: RolloutRow[] }) {
  const stops = useMemo(() => {
    const counts = new Map<string, number>();
    for (const row of rows) {
      const stop = row.stop ?? (row.state === 'live' ? 'running' : 'not known');
      counts.set(stop, (counts.get(stop) ?? 0) + 1);
    }
    return [...counts].toSorted(([, a], [, b]) => b - a);
  }, [rows]);
  return (
    <ChartPanel
      title="Why do rollouts stop?"
      explain="Stop reason as uploaded or read from the messages (finished: a tool said so)"
      note={`n ${formatCount(rows.length)}`}
      table={{ heads: ['stop', 'rollouts', 'share'], rows: stops.map(([stop, n]) => [stop, formatCount(n), formatShare(n, rows.length)]) }}
    >
      <ul aria-label="Stop reasons">
        {stops.slice(0, shown).map(([stop, n]) => (
          <li key={stop} className="grid h-[22px] grid-cols-[104px_minmax(0,1fr)_52px] items-center gap-2">
            <span className="truncate">
              <Stop stop={stop} />
            </span>
            <span className="h-[10px]" aria-hidden="true">
              <span
                className={`block h-full rounded-[1.5px] ${stop === 'finished' ? 'bg-good' : 'bg-unscored'}`}
                style={{ width: `${Math.max(0.5, (100 * n) / rows.length)}%` }}
              />
            </span>
            <span className="num whitespace-nowrap text-ink-2">{formatShare(n, rows.length)}</span>
          </li>
        ))}
      </ul>
    </ChartPanel>
  );
}
