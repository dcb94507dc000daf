import type { ReactNode } from 'react';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import type { LinkState, SessionLink } from '../data/session-link.ts';
import { formatCount, formatReward, plural } from '../format/number.ts';
import { formatAbsolute, formatDuration } from '../format/time.ts';
import { useNow } from '../frame/now.ts';
import type { EpisodeEnd } from './episode-end.ts';
import { SessionState } from '../sessions/SessionState.tsx';
import { useLinkState } from './useCalls.ts';

function Figure({ label, children, title }: { label: string; children: ReactNode; title?: string }) {
  return (
    <span className="flex items-baseline gap-[6px] whitespace-nowrap" title={title}>
      <span className="label">{label}</span>
      {children}
    </span>
  );
}

/** When the session times out. Pings of this page prevent one timeout; only calls and reads prevent the other. */
function TimeLeft({ session }: { session: SessionView }) {
  const now = useNow();
  if (session.expires_at === null) return null;
  const left = Date.parse(session.expires_at) - now;
  return (
    <Figure
      label="Times out in"
      title={`At ${formatAbsolute(session.expires_at) ?? ''}, unless a tool is called. This page sends pings while it is open.`}
    >
      <span className={`tabular-nums ${left < 60_000 ? 'text-policy strong' : ''}`}>
        {left <= 0 ? 'a moment' : formatDuration(Math.max(1_000, left)).replace(/^(\d+)\.\d s/, '$1 s')}
      </span>
    </Figure>
  );
}

/** One bar per call: up for a positive reward, down for a negative one, a tick if unscored. */
function RewardBars({ calls }: { calls: readonly SessionCallView[] }) {
  const shown = calls.slice(-60);
  const most = Math.max(1e-9, ...shown.map(({ reward }) => Math.abs(reward ?? 0)));
  const width = Math.max(8, shown.length * 6);
  return (
    <svg width={width} height="20" viewBox={`0 0 ${width} 20`} aria-hidden="true" className="flex-none">
      <line x1="0" x2={width} y1="10" y2="10" stroke="var(--line-strong)" />
      {shown.map(({ task_id: id, reward }, index) => {
        const height = reward === null ? 2 : Math.max(1.5, (Math.abs(reward) / most) * 9);
        const fill = reward === null ? 'var(--unscored)' : reward < 0 ? 'var(--bad)' : 'var(--good)';
        const y = reward === null ? 9 : reward < 0 ? 10 : 10 - height;
        return <rect key={id} x={index * 6 + 1} y={y} width="4" height={height} fill={fill} />;
      })}
    </svg>
  );
}

const linkTexts: Record<Exclude<LinkState, 'over'>, { label: string; title: string }> = {
  live: { label: 'Live', title: 'Calls and events of this session use one socket.' },
  connecting: { label: 'Connecting…', title: 'The socket of the session is opening. Calls wait for it and run once.' },
  http: {
    label: 'Live over HTTP',
    title: 'The socket cannot connect. Calls use HTTP requests and events use a stream. The page keeps trying to open the socket.',
  },
};

/** How the page is connected to the session. */
function LinkStatus({ link }: { link: SessionLink }) {
  const state = useLinkState(link);
  if (state === 'over') return null;
  const { label, title } = linkTexts[state];
  return (
    <span className="flex items-center gap-2 whitespace-nowrap text-ink-3" data-link={state} title={title}>
      <span className={state === 'connecting' ? 'rest-dot' : 'live-dot'} aria-hidden="true" />
      {label}
    </span>
  );
}

interface PlayStripProps {
  session: SessionView;
  calls: readonly SessionCallView[];
  link: SessionLink;
  end: EpisodeEnd | null;
  controls: ReactNode;
}

/** Total reward, time until the timeout, and state of the connection. */
export function PlayStrip({ session, calls, link, end, controls }: PlayStripProps) {
  const scored = calls.filter(({ reward }) => reward !== null).length;
  return (
    <div
      role="status"
      aria-label="Episode"
      className="sticky top-0 z-10 flex flex-wrap items-center gap-x-5 gap-y-1 border-b border-line bg-paper-0 px-4 py-[6px]"
    >
      <Figure label={end ? '' : 'Total reward'} title="Sum over the scored calls. Failed calls are unscored, which is not 0.">
        <span
          className={`text-[18px] leading-[22px] tabular-nums strong ${end?.solved ? 'text-good' : ''}`}
          data-total={session.total_reward ?? ''}
        >
          {end ? end.text : formatReward(session.total_reward)}
        </span>
        <span className="label">
          {formatCount(scored)} of {plural(calls.length, 'call')} scored
        </span>
      </Figure>
      <RewardBars calls={calls} />
      {controls}
      <span className="flex-1" />
      {session.live && <LinkStatus link={link} />}
      <SessionState session={session} />
      {session.live && <TimeLeft session={session} />}
    </div>
  );
}
