import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import { formatCount, formatReward, plural, UNKNOWN } from '../../format/number.ts';
import { formatDuration } from '../../format/time.ts';
import { taskLabel } from '../../format/task.ts';
import { Age } from '../../frame/Age.tsx';
import { PartialSum } from '../../frame/PartialSum.tsx';
import { RewardDot } from '../../frame/Reward.tsx';
import { Stop } from '../../frame/Stop.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import { Field } from '../Header.tsx';
import { RewardStrip } from '../RewardStrip.tsx';
import { nameAt, rewardOf, type TranscriptItem } from '../transcript.ts';
import { Grading, RelatedRollouts } from './Grading.tsx';
import type { PanelProps } from './panel-props.ts';
import { PropertyList, Section } from './parts.tsx';

/** Rewards that are always visible, and those that open with a click. */
const MAX_VISIBLE = 8;
const MAX_LISTED = 100;

/** The messages with a reward, the largest first, and the total. Zeros are folded. */
function Rewards({ header, outline, items, go }: PanelProps) {
  const scored = useMemo(
    () =>
      items
        .map((item, row) => ({ item, row, reward: rewardOf(outline, item) }))
        .filter(({ reward }) => reward !== null)
        .toSorted((a, b) => Math.abs(b.reward!) - Math.abs(a.reward!) || b.row - a.row),
    [outline, items],
  );
  const zeros = scored.filter(({ reward }) => reward === 0).length;
  const visible = scored.slice(0, Math.min(MAX_VISIBLE, scored.length - zeros));
  const folded = scored.slice(visible.length, MAX_LISTED);
  const list = (rewards: typeof scored) => (
    <ul className="text-[12px]">
      {rewards.map(({ item, row, reward }) => (
        <li key={row}>
          <button
            type="button"
            onClick={() => go(row)}
            className="flex h-[22px] w-full items-center justify-between gap-2 hover:bg-paper-2"
          >
            <span className="truncate text-ink-2">
              <PlainText text={name(item)} /> <span className="text-ink-3">#{item.anchor}</span>
            </span>
            <span className="num">{formatReward(reward)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
  const name = (item: TranscriptItem) => (item.kind === 'call' ? (nameAt(outline, item.call) ?? 'result') : 'message');
  return (
    <Section title="Reward">
      <RewardStrip outline={outline} items={items} width={286} height={36} />
      {scored.length === 0 && <p className="text-[12px] text-ink-3">No message has a reward.</p>}
      {list(visible)}
      {folded.length > 0 && (
        <details className="text-[12px]">
          <summary className="cursor-pointer text-ink-3 hover:text-ink-1">
            {zeros === scored.length - visible.length
              ? plural(zeros, 'message') + ' with a reward of 0'
              : `${formatCount(scored.length - visible.length)} more, ${formatCount(zeros)} with a reward of 0`}
          </summary>
          {list(folded)}
          {scored.length > MAX_LISTED && <p className="label">And {formatCount(scored.length - MAX_LISTED)} more</p>}
        </details>
      )}
      <dl className="text-[12px]">
        <Total name="Total" title="Sum of the message rewards. If no message has a reward: the reported total, unless it is 0." strong>
          {header.reward === null ? (
            <>
              <PartialSum rollout={header} /> {UNKNOWN}
            </>
          ) : (
            <Field header={header} name="reward">
              {formatReward(header.reward)}
            </Field>
          )}
        </Total>
        {header.reward_reported !== null && <Total name="Reported by the trainer">{formatReward(header.reward_reported)}</Total>}
        {header.flags.includes('reward_mismatch') && (
          <p className="py-1 text-policy">▲ The reported total is not the sum of the message rewards.</p>
        )}
        {header.flags.includes('nonfinite') && (
          <p className="py-1 text-infrastructure">
            ✕ A value is NaN or infinite, or a reward exceeds single precision.{' '}
            {header.reward === null && 'A rollout with such a reward has no total.'}
          </p>
        )}
        {header.flags.includes('stamped_turn') && (
          <p className="py-1 text-ink-3">All events of a turn have the same reward, which counts once.</p>
        )}
      </dl>
    </Section>
  );
}

function Total({ name, title, strong = false, children }: { name: string; title?: string; strong?: boolean; children: React.ReactNode }) {
  return (
    <div className={`flex h-[22px] items-center justify-between border-t border-line ${strong ? 'strong' : 'text-ink-2'}`} title={title}>
      <dt>{name}</dt>
      <dd className="num">{children}</dd>
    </div>
  );
}

function Siblings({ header, group, solved }: PanelProps) {
  if (!group || group.rollouts.length < 2) return null;
  return (
    <Section title={`Group, ${group.received} of ${group.expected ?? group.received}`}>
      <ul className="-mx-3 text-[12px]">
        {group.rollouts.map((row, i) => (
          <li key={row.id}>
            <Link
              to="/rollout/$id"
              params={{ id: row.id }}
              search={(old) => ({ ...old, diff: undefined })}
              preload={false}
              replace
              aria-current={row.id === header.id ? 'true' : undefined}
              className={`grid h-[26px] grid-cols-[28px_12px_44px_48px_minmax(0,1fr)] items-center gap-2 px-3 hover:bg-paper-2 ${row.id === header.id ? 'strong bg-paper-2' : ''}`}
            >
              <span className="text-ink-3">#{row.sample ?? i}</span>
              <RewardDot reward={row.reward} solved={solved} />
              <span className="num">{row.partial_reward === null ? formatReward(row.reward) : <PartialSum rollout={row} />}</span>
              <span className="num text-ink-3" title="Advantage">
                {formatReward(row.advantage, { signed: true })}
              </span>
              <span className="truncate text-ink-3">
                {row.id === header.id ? 'This rollout' : `${plural(row.turns, 'turn')}, ${row.stop ?? row.state}`}
              </span>
            </Link>
          </li>
        ))}
      </ul>
      {group.note && <p className="label mt-2">{group.note}</p>}
    </Section>
  );
}

const provenanceTexts: Record<string, string> = {
  reported: 'As uploaded',
  parsed: 'Read from another field',
  inferred: 'Inferred',
  unknown: 'Not in the upload',
};

export function OutcomeTab(props: PanelProps) {
  const { header, group } = props;
  const member = group?.rollouts.find(({ id }) => id === header.id);
  const provenanceOf = (name: string) =>
    `${provenanceTexts[header.provenance[name] ?? 'unknown']}${header.rules[name] ? `: ${header.rules[name]}` : ''}`;
  const span = Date.parse(header.updated_at) - Date.parse(header.created_at);
  return (
    <>
      <Rewards {...props} />
      <Grading {...props} />
      <RelatedRollouts {...props} />
      <Section>
        <PropertyList
          items={[
            ['Stop reason', <Stop key="s" stop={header.stop} />],
            [
              'Provenance',
              <span key="h" className="text-ink-3">
                {provenanceOf('stop')}
              </span>,
            ],
            ...(header.failure_class === null && header.partial_reward === null
              ? []
              : ([['Unscored', `${header.failure_class ?? header.stop ?? 'interrupted'}, not caused by the policy`]] as const)),
            [
              'Advantage',
              member && member.advantage !== null
                ? `${formatReward(member.advantage, { signed: true })}, centred ${formatReward(member.advantage_centred, { signed: true })}`
                : UNKNOWN,
            ],
            ...(member?.reward_trained === null || member === undefined
              ? []
              : ([['Trained on', formatReward(member.reward_trained)]] as const)),
            [
              'Step',
              <Field key="st" header={header} name="step">
                {header.step ?? UNKNOWN}
              </Field>,
            ],
            ...(header.policy_step === null ? [] : ([['Policy step', header.policy_step]] as const)),
            [
              'Group',
              <Field key="g" header={header} name="group">
                {header.group === null ? UNKNOWN : taskLabel(header)}
              </Field>,
            ],
            [
              'Sample',
              <Field key="sa" header={header} name="sample">
                {header.sample ?? UNKNOWN}
              </Field>,
            ],
            [
              'Phase',
              <Field key="p" header={header} name="phase">
                {header.phase}
              </Field>,
            ],
            ['Environment', <PlainText key="e" text={header.environment ?? UNKNOWN} />],
            ['Model', header.model ?? UNKNOWN],
            ['State', header.state],
            [
              'Received',
              <span key="r">
                <Age iso={header.created_at} />
                {header.time_kind === 'live' ? `, within ${formatDuration(span)}` : ', uploaded at once'}
              </span>,
            ],
          ]}
        />
      </Section>
      <Siblings {...props} />
      <Section>
        <p className="label break-all font-mono">{header.id}</p>
      </Section>
    </>
  );
}
