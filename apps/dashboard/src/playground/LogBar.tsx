import { useQueryClient } from '@tanstack/react-query';
import type { SessionView } from '@palestra/protocol';
import { wholeCallQuery } from '../data/sessions.ts';
import { plural } from '../format/number.ts';
import { CopyLink } from '../frame/CopyLink.tsx';
import { jsonlOf } from './call-snippets.ts';
import { type LogFilter, type NumberedCall, OUTCOMES } from './log-filter.ts';

interface BarProps {
  session: SessionView;
  filter: LogFilter;
  onFilter: (filter: LogFilter) => void;
  matching: readonly NumberedCall[];
  total: number;
}

const outcomeNames = { all: 'All', scored: 'Scored', unscored: 'Unscored', failed: 'Failed', running: 'Running' } as const;

/** The filter of the log, and a button that copies the matching calls. */
export function LogBar({ session, filter, onFilter, matching, total }: BarProps) {
  const client = useQueryClient();
  const lines = async () => {
    const whole = matching.map(async ({ call, n }) =>
      jsonlOf(call.truncated ? await client.fetchQuery(wholeCallQuery(session.sid, call)) : call, n),
    );
    return `${(await Promise.all(whole)).join('\n')}\n`;
  };
  return (
    <div role="search" aria-label="Filter the log" className="flex flex-wrap items-center gap-2 border-b border-line px-4 py-[5px]">
      <input
        type="search"
        className="input h-[24px] w-[190px]"
        placeholder="Filter by tool, arguments or result"
        aria-label="Filter by tool, arguments or result"
        value={filter.text}
        onChange={(event) => onFilter({ ...filter, text: event.target.value })}
      />
      <select
        className="input h-[24px]"
        aria-label="Outcome"
        value={filter.outcome}
        onChange={(event) => onFilter({ ...filter, outcome: event.target.value as LogFilter['outcome'] })}
      >
        {OUTCOMES.map((outcome) => (
          <option key={outcome} value={outcome}>
            {outcomeNames[outcome]}
          </option>
        ))}
      </select>
      <span className="label" role="status">
        {matching.length === total ? plural(total, 'call') : `${matching.length} of ${plural(total, 'call')}`}
      </span>
      <span className="flex-1" />
      <span className="text-[12px]">
        <CopyLink label="Copy as JSONL" text={lines} />
      </span>
    </div>
  );
}
