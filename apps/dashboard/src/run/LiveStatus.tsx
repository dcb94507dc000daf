import type { RunView } from '@palestra/protocol';
import { useEffect, useRef, useState } from 'react';
import { feed, useFeed } from '../data/live/useFeed.ts';
import { formatCount, plural } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { useKeys } from '../frame/keyboard.ts';
import { Pending, pendingText } from './Pending.tsx';
import { RunStep } from './Step.tsx';

/** Screen readers announce the counts at most this often. */
const ANNOUNCE_MS = 10_000;

/** Shows whether the run is live and the delay of its figures; a button freezes the page. */
export function LiveStatus({ run }: { run: RunView }) {
  const { counters, frozenAt, link } = useFeed();
  const now = counters.get(run.id);
  useKeys({ z: () => feed.toggleFreeze() });
  const live = now ? now.live > 0 || run.live : run.live;
  const lag = live && now?.lag_ms != null && now.lag_ms >= 0 ? now.lag_ms : null;
  return (
    <span className="flex items-center gap-[10px] whitespace-nowrap text-ink-3">
      <span className={live ? 'live-dot' : 'rest-dot'} />
      <span className="max-[1100px]:hidden">
        {live ? 'Live' : run.finished ? 'Finished' : 'Quiet'}
        {run.last_step !== null && (
          <>
            {' '}
            · step <RunStep step={run.last_step} />
          </>
        )}{' '}
        · {plural(now?.rollouts ?? run.num_rollouts, 'rollout')}
        {live && now && now.live > 0 && <> · {formatCount(now.live)} in progress</>} ·{' '}
        {lag === null ? (
          <Age iso={run.updated_at} />
        ) : (
          <span title="Time since the newest event in the figures">lag {formatDuration(lag)}</span>
        )}
        {link === 'polling' && <> · refreshed every 5 s</>}
      </span>
      {run.pending !== null && <Pending text={pendingText(run.pending)} />}
      <button
        type="button"
        className="button"
        aria-pressed={frozenAt !== null}
        aria-keyshortcuts="z"
        title={frozenAt === null ? 'Stop updating the page' : 'Resume updating the page'}
        onClick={() => feed.toggleFreeze()}
      >
        {frozenAt === null ? 'Freeze' : `Frozen at ${new Date(frozenAt).toLocaleTimeString('en-GB')}`}
      </button>
      <Announcer text={`${plural(now?.rollouts ?? run.num_rollouts, 'rollout')}${live ? ', live' : ''}`} />
    </span>
  );
}

function Announcer({ text }: { text: string }) {
  const [announced, setAnnounced] = useState(text);
  const last = useRef(0);
  useEffect(() => {
    const wait = Math.max(0, last.current + ANNOUNCE_MS - Date.now());
    const timer = setTimeout(() => {
      last.current = Date.now();
      setAnnounced(text);
    }, wait);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span className="sr-only" aria-live="polite">
      {announced}
    </span>
  );
}
