import type { SessionCallView, SessionView } from '@palestra/protocol';
import { formatCount, formatReward, plural } from '../format/number.ts';
import { formatAbsolute, formatDuration } from '../format/time.ts';
import { useNow } from '../frame/now.ts';
import { SessionState } from '../sessions/SessionState.tsx';

function Fact({ label, children, title }: { label: string; children: React.ReactNode; title?: string }) {
  return (
    <span className="flex items-baseline gap-[6px] whitespace-nowrap" title={title}>
      <span className="label">{label}</span>
      {children}
    </span>
  );
}

/** When the session ends by itself: pings of this page keep its first clock, only calls and reads its second. */
function TimeLeft({ session }: { session: SessionView }) {
  const now = useNow();
  if (session.expires_at === null) return null;
  const left = Date.parse(session.expires_at) - now;
  return (
    <Fact
      label="ends by itself in"
      title={`At ${formatAbsolute(session.expires_at) ?? ''}, unless something is called. This page pings while it is open.`}
    >
      <span className={`tabular-nums ${left < 60_000 ? 'text-policy strong' : ''}`}>
        {left <= 0 ? 'any moment' : formatDuration(Math.max(1_000, left)).replace(/^(\d+)\.\d s/, '$1 s')}
      </span>
    </Fact>
  );
}

/** One bar a call: up for reward, down for penalty, a tick for what was not scored. */
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

/** What the episode came to so far, and how long it still waits for its player. */
export function PlayStrip({ session, calls }: { session: SessionView; calls: readonly SessionCallView[] }) {
  const scored = calls.filter(({ reward }) => reward !== null).length;
  const finished = calls.some((call) => call.finished);
  return (
    <div
      role="status"
      aria-label="Episode"
      className="sticky top-0 z-10 flex flex-wrap items-center gap-x-5 gap-y-1 border-b border-line bg-paper-0 px-4 py-[6px]"
    >
      <Fact label="total reward" title="Sum over the calls that were scored. Failed calls are unscored, never 0.">
        <span className="text-[18px] leading-[22px] tabular-nums strong" data-total={session.total_reward ?? ''}>
          {session.total_reward === null ? '–' : formatReward(session.total_reward, { digits: 3 })}
        </span>
        <span className="label">
          {formatCount(scored)} of {plural(calls.length, 'call')} scored
        </span>
      </Fact>
      <RewardBars calls={calls} />
      {finished && <span className="chip text-good">● finished</span>}
      <span className="flex-1" />
      <SessionState session={session} />
      {session.live && <TimeLeft session={session} />}
    </div>
  );
}
