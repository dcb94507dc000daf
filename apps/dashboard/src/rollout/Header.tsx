import type { RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import { type ReactNode } from 'react';
import type { GroupMember } from '../data/groups.ts';
import { formatBytes, formatCount, formatReward, plural } from '../format/number.ts';
import { formatDuration } from '../format/time.ts';
import { PartialSum } from '../frame/PartialSum.tsx';
import { WithProvenance } from '../frame/Provenance.tsx';
import { RewardDot } from '../frame/Reward.tsx';
import { Stop } from '../frame/Stop.tsx';
import { RewardStrip } from './RewardStrip.tsx';
import type { TranscriptItem } from './transcript.ts';
import { PlainText } from '../text/PlainText.tsx';

function Figure({ label, children }: { label: string; children: ReactNode }) {
  return (
    <span className="flex flex-none items-baseline gap-2 whitespace-nowrap">
      <span className="label">{label}</span>
      <span className="strong tabular-nums">{children}</span>
    </span>
  );
}

const toneOf = (reward: number | null, solved: (reward: number) => boolean) =>
  reward === null ? 'text-ink-3' : solved(reward) ? 'text-good' : reward > 0 ? '' : 'text-bad';

/** A field of the header, marked with its provenance. */
export function Field({
  header,
  name,
  confidence,
  children,
}: {
  header: RolloutHeader;
  name: string;
  confidence?: number | null | undefined;
  children: ReactNode;
}) {
  return (
    <WithProvenance provenance={header.provenance[name]} rule={header.rules[name]} confidence={confidence}>
      {children}
    </WithProvenance>
  );
}

const verdicts: Record<string, readonly [className: string, text: string, title: string]> = {
  verified: ['text-good', '✓ Verified by the ledger', 'All calls, arguments and rewards match the session ledger.'],
  partial: ['text-policy', '◐ Partly in the ledger', 'Some calls match the session ledger.'],
  unverified: ['', 'Not in the ledger', 'No call matches the session ledger.'],
};

export function Header({
  header,
  member,
  outline,
  items,
  solved,
  confidence,
  notice,
  assessment,
}: {
  header: RolloutHeader;
  /** The rollout in its group, if the group is known. */
  member: GroupMember | undefined;
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  solved: (reward: number) => boolean;
  /** Confidence of an inferred step. */
  confidence: number | null;
  notice: string;
  /** The newest verdict and score of the annotations. */
  assessment: string | null;
}) {
  const verdict = header.verified === null ? undefined : verdicts[header.verified];
  const best = header.neighbours.best_sample;
  return (
    <div className="flex min-h-[40px] flex-none flex-wrap items-center gap-x-[18px] gap-y-1 border-b border-line px-4 max-[760px]:py-[6px]">
      <Figure label="Reward">
        <span className={`inline-flex items-center gap-[6px] ${toneOf(header.reward, solved)}`}>
          {header.reward === null ? (
            formatReward(null)
          ) : (
            <Field header={header} name="reward">
              {formatReward(header.reward)}
            </Field>
          )}
          <RewardDot reward={header.reward} solved={solved} />
          <PartialSum rollout={header} />
        </span>
        {best && best.reward !== null && <span className="ml-2 font-[450] text-ink-3">Best sample {formatReward(best.reward)}</span>}
      </Figure>
      <Figure label="Stop reason">
        {header.stop === null ? (
          <Stop stop={null} />
        ) : (
          <Field header={header} name="stop">
            <Stop stop={header.stop} />
          </Field>
        )}
      </Figure>
      {member && member.advantage !== null && (
        <Figure label="Advantage">
          <span title="(r − mean) / (std + 1e-6) in its group, ddof 1">{formatReward(member.advantage, { signed: true })}</span>
        </Figure>
      )}
      <Figure label="Turns">
        <Field header={header} name="turns">
          {formatCount(header.turns)}
        </Field>
      </Figure>
      <Figure label="Step">
        <Field header={header} name="step" confidence={confidence}>
          {header.step ?? '–'}
        </Field>
      </Figure>
      {verdict && (
        <span className={`chip flex-none ${verdict[0]}`} title={verdict[2]}>
          {verdict[1]}
        </span>
      )}
      {header.state === 'live' && (
        <span className="flex flex-none items-center gap-[10px] text-ink-2">
          <span className="live-dot" /> Live
        </span>
      )}
      {header.gaps > 0 && <span className="chip flex-none text-infrastructure">✕ {formatCount(header.gaps)} missing</span>}
      {assessment && <span className="chip flex-none text-accent">✎ {assessment}</span>}
      <span className="flex-none max-[1120px]:hidden">
        <RewardStrip outline={outline} items={items} width={140} />
      </span>
      <span role="status" className="label flex-none text-accent">
        {notice}
      </span>
      <span
        className="label min-w-[60px] flex-[1_1_60px] truncate text-right"
        title={`Time in tools, model tokens, size, model${header.model === null ? '' : `: ${header.model}`}`}
      >
        {header.latency_ms !== null && <>{formatDuration(header.latency_ms)} in tools · </>}
        {header.tokens !== null && (
          <>
            {header.provenance['tokens'] === 'reported' ? '' : '≈'}
            {formatCount(header.tokens)} tokens ·{' '}
          </>
        )}
        {plural(header.num_messages, 'message')}, {formatBytes(header.bytes)}
        {header.model !== null && <> · {header.model}</>}
      </span>
    </div>
  );
}

/** Breadcrumbs: runs / run / group / sample. */
export function Crumbs({ header, title }: { header: RolloutHeader; title: string }) {
  const { run } = header;
  const className = 'max-w-[220px] truncate hover:text-ink-1 max-[560px]:max-w-[96px]';
  return (
    <>
      <Link to="/$org/runs" params={{ org: run.org }} search={{}} className="hover:text-ink-1 max-[1400px]:hidden">
        {run.org}
      </Link>
      <span aria-hidden="true" className="max-[1400px]:hidden">
        /
      </span>
      <Link to="/$org/runs/$run" params={{ org: run.org, run: run.name }} search={{}} className={className}>
        <PlainText text={run.name} />
      </Link>
      <span aria-hidden="true">/</span>
      {header.group !== null && (
        <>
          <Link
            to="/$org/runs/$run/groups/$group"
            params={{ org: run.org, run: run.name, group: header.group }}
            search={{ at: header.step ?? undefined } as never}
            className="flex-none hover:text-ink-1"
          >
            Group
          </Link>
          <span aria-hidden="true">/</span>
        </>
      )}
      <h1 className="strong truncate text-ink-1" title={title}>
        <PlainText text={title} />
      </h1>
    </>
  );
}
