import type { ListedRun } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import { Sparkline } from '../charts/Sparkline.tsx';
import { formatCount, formatReward, formatShare, UNKNOWN } from '../format/number.ts';
import { formatAbsolute } from '../format/time.ts';
import { Age } from '../frame/Age.tsx';
import { WithProvenance } from '../frame/Provenance.tsx';
import { hasInferredSteps } from '../run/Step.tsx';
import type { Column } from '../table/DataTable.tsx';
import { RunName } from '../run/RunName.tsx';
import { PlainText } from '../text/PlainText.tsx';
import { namesWithoutOwner } from './short-names.ts';

const newest = 'over the newest 10 training steps; over all rollouts if no step is known';

/** `last 10 steps`: what the figures of the row are over. */
const windowOf = ({ recent }: ListedRun): string =>
  recent === null ? 'no rollout' : recent.steps === 0 ? 'all rollouts' : recent.steps === 1 ? 'last step' : `last ${recent.steps} steps`;

/** What a mean of rewards leaves out. */
function leftOutOf(run: ListedRun): string {
  const { recent } = run;
  if (recent === null) return 'no rollout';
  return `${windowOf(run)}: ${formatCount(recent.scored)} of ${formatCount(recent.rollouts)} rollouts have a reward`;
}

function Delta({ value }: { value: number | null | undefined }) {
  if (value === null || value === undefined) return <span className="text-ink-3">{UNKNOWN}</span>;
  const flat = Math.abs(value) < 0.005;
  return (
    <span className={flat ? 'text-ink-3' : value > 0 ? 'text-good' : 'text-bad'}>
      <span aria-hidden="true">{flat ? '' : value > 0 ? '▲ ' : '▼ '}</span>
      {formatReward(value, { signed: true })}
    </span>
  );
}

function ownerTitle({ origin }: ListedRun): string | undefined {
  if (origin?.user) return `${origin.user}${origin.key ? `\nkey ${origin.key}` : ''}, from the session of the newest rollout`;
  return origin?.agent ? `agent ${origin.agent}, as uploaded` : undefined;
}

interface Selection {
  has: (run: ListedRun) => boolean;
  toggle: (run: ListedRun) => void;
}

const typeOf = ({ phases }: ListedRun): string => phases.filter((phase) => phase !== 'unknown').join(' + ') || UNKNOWN;

/** Columns for wide windows. Elsewhere a second line and the title of the name have their values. */
const WIDE = new Set(['environments', 'type', 'source', 'model', 'tokens', 'owner', 'tags']);
/** Height of a row with two lines, px. */
export const TWO_LINES = 42;

/** The columns of the list of runs, in a window that is wide or not, with tags if any run has some. */
export function runColumns(selected: Selection, wide: boolean, runs: readonly ListedRun[]): Column<ListedRun>[] {
  const tagged = runs.some(({ tags }) => tags.length > 0);
  return allColumns(selected, wide, runs).filter(({ id }) => (wide || !WIDE.has(id)) && (tagged || id !== 'tags'));
}

const CHARACTER_PX = 7;
const PADDING_PX = 16;
const MAX_CHARACTERS = 64;
/** A column of `least` px or more. Columns of texts share the width of the table by the lengths of their longest texts. */
function textTrack(least: number, texts: readonly string[]): string {
  const longest = texts.reduce((most, text) => Math.max(most, text.length), 0);
  return `minmax(${least}px,${Math.max(least, Math.min(MAX_CHARACTERS, longest) * CHARACTER_PX + PADDING_PX)}fr)`;
}

function allColumns(selected: Selection, wide: boolean, runs: readonly ListedRun[]): Column<ListedRun>[] {
  const environmentNames = namesWithoutOwner(runs.flatMap(({ environments }) => environments));
  const modelNames = namesWithoutOwner(runs.flatMap(({ origin }) => origin?.model ?? []));
  const environmentsOf = (run: ListedRun) => run.environments.map((name) => environmentNames.get(name) ?? name).join(', ') || UNKNOWN;
  const modelOf = ({ origin }: ListedRun) => (origin?.model ? (modelNames.get(origin.model) ?? origin.model) : UNKNOWN);
  const ownerOf = ({ origin }: Pick<ListedRun, 'origin'>) => origin?.user ?? origin?.agent ?? UNKNOWN;
  /** Environments and model, in a window without columns for them. */
  const originOf = (run: ListedRun) => [environmentsOf(run), modelOf(run)].filter((name) => name !== UNKNOWN).join(' · ') || UNKNOWN;
  return [
    {
      id: 'selected',
      head: <span className="sr-only">Selected</span>,
      track: '30px',
      cell: (run) => (
        <input
          type="checkbox"
          className="block accent-(--accent)"
          aria-label={`Select ${run.name} for a comparison`}
          checked={selected.has(run)}
          onChange={() => selected.toggle(run)}
        />
      ),
    },
    {
      id: 'state',
      head: 'Newest',
      explain: 'Time of the newest event; a filled dot means live',
      track: '72px',
      phone: '72px',
      cell: (run) => (
        <span className="flex items-center gap-[7px] text-ink-3">
          <span className={`flex-none ${run.live ? 'live-dot' : 'rest-dot'}`} />
          <span className="sr-only">{run.live ? 'live' : 'quiet'}</span>
          <Age iso={run.updated_at} short />
        </span>
      ),
    },
    {
      id: 'name',
      head: 'Run',
      track: textTrack(
        260,
        runs.map(({ name }) => name),
      ),
      phone: 'line',
      title: (run) =>
        [run.name, typeOf(run), run.tags.join(', '), `since ${formatAbsolute(run.created_at)}`, ownerTitle(run)].filter(Boolean).join('\n'),
      cell: (run) => (
        <>
          <Link
            to="/$org/runs/$run"
            params={{ org: run.org, run: run.name }}
            search={{}}
            className="block truncate strong hover:text-accent"
            aria-label={run.name}
            data-full={run.name}
            tabIndex={-1}
          >
            <RunName name={run.name} />
          </Link>
          {!wide && <span className="label block truncate max-[560px]:hidden">{originOf(run)}</span>}
        </>
      ),
    },
    {
      id: 'environments',
      head: 'Environments',
      explain: 'Environments of the rollouts',
      track: textTrack(104, runs.map(environmentsOf)),
      title: (run) => run.environments.join(', '),
      cell: (run) => <span className="text-ink-2">{environmentsOf(run)}</span>,
    },
    {
      id: 'type',
      head: 'Type',
      explain: 'Training, evaluation, or both',
      track: '88px',
      title: typeOf,
      cell: (run) => <span className="text-ink-3">{typeOf(run)}</span>,
    },
    {
      id: 'source',
      head: 'Source',
      explain: 'Trainer that uploaded the newest rollout',
      track: textTrack(
        64,
        runs.map(({ origin }) => origin?.source ?? ''),
      ),
      title: (run) => run.origin?.source ?? undefined,
      cell: (run) => <span className="text-ink-3">{run.origin?.source ?? UNKNOWN}</span>,
    },
    {
      id: 'model',
      head: 'Model',
      explain: 'Model and trainer of the newest rollout',
      track: textTrack(84, runs.map(modelOf)),
      title: (run) => [run.origin?.model, run.origin?.source && `uploaded by ${run.origin.source}`].filter(Boolean).join('\n'),
      cell: (run) => (
        <span className="text-ink-3">
          <PlainText text={modelOf(run)} />
        </span>
      ),
    },
    {
      id: 'step',
      head: 'Step',
      track: '50px',
      align: 'right',
      cell: (run) => (
        <WithProvenance provenance={run.last_step === null ? 'unknown' : hasInferredSteps(run) ? 'inferred' : 'reported'}>
          {run.last_step}
        </WithProvenance>
      ),
    },
    { id: 'rollouts', head: 'Rollouts', track: '64px', align: 'right', cell: (run) => formatCount(run.num_rollouts) },
    {
      id: 'reward',
      head: 'Mean reward',
      explain: `Mean reward by step, and ${newest}`,
      track: wide ? '204px' : '168px',
      phone: 'minmax(0,1fr)',
      title: (run) =>
        `${leftOutOf(run)}; mean of the whole run ${formatReward(run.avg_rollout_reward)}, ${formatCount(run.num_scored)} of ${formatCount(run.num_rollouts)} rollouts`,
      cell: (run) => (
        <span className="flex items-center gap-[6px]">
          <Sparkline values={run.sparkline} label="Mean reward" width={wide ? 100 : 64} />
          <span className="strong tabular-nums">{formatReward(run.recent?.reward)}</span>
          <span className="label">{windowOf(run).replace('last ', '')}</span>
        </span>
      ),
    },
    {
      id: 'delta',
      head: 'Δ 10',
      explain: 'Mean reward of the newest 10 steps minus that of the 10 steps before',
      track: '78px',
      phone: '78px',
      align: 'right',
      cell: (run) => <Delta value={run.recent?.reward_delta} />,
    },
    {
      id: 'pass',
      head: 'pass@k',
      explain: `pass@k for the most common group size k, ${newest}`,
      track: '68px',
      align: 'right',
      title: ({ recent }) =>
        recent?.pass_k == null
          ? undefined
          : `${recent.pass_k} is the most common group size; ${formatCount(recent.pass_groups)} of ${formatCount(recent.groups)} groups have as many scored rollouts`,
      cell: (run) =>
        run.recent?.pass == null ? (
          <span className="text-ink-3">{UNKNOWN}</span>
        ) : (
          <>
            {formatReward(run.recent.pass)} <span className="label">@{run.recent.pass_k}</span>
          </>
        ),
    },
    {
      id: 'zero',
      head: 'Zero var.',
      explain: `Share of groups with equal rewards, ${newest}`,
      track: '67px',
      align: 'right',
      cell: (run) => formatShare(run.recent?.zero_variance, 1),
    },
    {
      id: 'errors',
      head: 'Left out',
      explain: `Rollouts without a reward, which the figures leave out, ${newest}`,
      track: '68px',
      title: (run) =>
        `${leftOutOf(run)}; ${formatShare(run.recent?.broken_off, 1)} were interrupted by the environment or the infrastructure`,
      align: 'right',
      cell: (run) => {
        if (run.recent === null) return UNKNOWN;
        const { rollouts, scored, broken_off } = run.recent;
        return <span className={broken_off ? 'text-infrastructure' : ''}>{formatCount(rollouts - scored)}</span>;
      },
    },
    {
      id: 'tokens',
      head: '≈ Tokens',
      explain: `Mean tokens of the model and the tools per rollout, ${newest}`,
      track: '58px',
      align: 'right',
      cell: (run) => <span className="text-ink-3">{formatCount(run.recent?.tokens)}</span>,
    },
    {
      id: 'owner',
      head: 'Owner',
      explain:
        'User and API key of the session of the newest rollout. Without a session: the agent that its upload names. Palestra does not store who uploaded a rollout.',
      track: textTrack(64, runs.map(ownerOf)),
      title: (run) => ownerTitle(run),
      cell: ({ origin }) => (
        <span className={origin?.user ? 'text-ink-2' : 'text-ink-3'}>
          <PlainText text={ownerOf({ origin })} />
        </span>
      ),
    },
    {
      id: 'tags',
      head: 'Tags',
      track: textTrack(
        44,
        runs.map(({ tags }) => tags.join('     ')),
      ),
      title: (run) => run.tags.join(', '),
      cell: (run) => (
        <span className="flex gap-1">
          {run.tags.map((tag) => (
            <Link
              key={tag}
              to="."
              search={(old: object) => ({ ...old, tag }) as never}
              className="chip hover:text-ink-1"
              aria-label={`Only runs tagged ${tag}`}
            >
              {tag}
            </Link>
          ))}
        </span>
      ),
    },
  ];
}
