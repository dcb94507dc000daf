import { Link } from '@tanstack/react-router';
import { useQuery } from '@tanstack/react-query';
import {
  type EnvironmentDetails,
  type EnvironmentDiscoveryView,
  type EnvironmentView,
  JSON_LINES_ROW_FORMATS,
  TASK_ROW_FORMATS,
  type TaskRowFormat,
} from '@palestra/protocol';
import { type ReactNode, useState } from 'react';
import { environmentRunsQuery } from '../data/environments.ts';
import { slotsQuery } from '../data/sessions.ts';
import { formatCount, formatReward, formatShare, plural } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { SlotMeter } from '../sessions/SlotBoard.tsx';
import { Markdown } from '../text/Markdown.tsx';
import { EnvironmentStatus } from './EnvironmentStatus.tsx';
import { summaryOf } from './report.ts';

function Section({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  return (
    <section className="border-b border-line px-4 py-3">
      <h2 className="mb-1 flex items-center gap-2 strong">
        {title}
        {action && <span className="ml-auto">{action}</span>}
      </h2>
      {children}
    </section>
  );
}

type Detail = [name: string, value: ReactNode] | false;
const Details = ({ details }: { details: Detail[] }) => (
  <dl className="grid grid-cols-[88px_minmax(0,1fr)] gap-x-3 gap-y-[3px] text-[12px]">
    {details
      .filter((detail) => detail !== false)
      .map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-ink-3">{name}</dt>
          <dd className="min-w-0 [overflow-wrap:anywhere]">{value}</dd>
        </div>
      ))}
  </dl>
);

interface CardProps {
  environment: EnvironmentDetails;
  discovery: EnvironmentDiscoveryView | undefined;
  problem: Error | null;
}

/** The README, and beside it status, slots, splits, tools and usage of the environment. */
export function CardTab({ environment, discovery, problem }: CardProps) {
  const { readme_content: readme, description } = environment;
  return (
    <div className="grid min-h-full grid-cols-[minmax(0,1fr)_340px] max-[1000px]:grid-cols-1">
      <div className="min-w-0 px-4 py-4">
        {readme ? (
          <Markdown source={readme} className="max-w-[84ch] text-[14px] leading-[22px]" />
        ) : (
          <p className="max-w-[84ch] text-[14px] leading-[22px]">{description || 'This environment has no description and no README.'}</p>
        )}
      </div>
      <aside className="border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t" aria-label="About this environment">
        <About environment={environment} />
        <Slots slug={`${environment.owner}/${environment.name}`} />
        {problem && <p className="border-b border-line px-4 py-3 text-bad">{problem.message}</p>}
        {discovery?.variants.map((variant) => (
          <Variant key={variant.name} environment={environment} variant={variant} alone={discovery.variants.length === 1} />
        ))}
        <Report environment={environment} />
        <UsedBy owner={environment.owner} name={environment.name} />
        <Snippets environment={environment} />
      </aside>
    </div>
  );
}

function About({ environment }: { environment: EnvironmentView }) {
  return (
    <Section title="About">
      <Details
        details={[
          ['Status', <EnvironmentStatus key="status" environment={environment} />],
          environment.status_detail !== null && ['Detail', environment.status_detail],
          ['Runs as', environment.source.url ?? environment.source.kind],
          environment.version !== null && ['Version', formatCount(environment.version)],
          ['Tasks', formatCount(environment.total_task_count)],
          ['Visibility', environment.is_private ? 'Private' : 'Public'],
          ['Updated', <Age key="updated" iso={environment.updated_at} />],
        ]}
      />
    </Section>
  );
}

function Slots({ slug }: { slug: string }) {
  const slots = useQuery(slotsQuery(slug));
  const [owner, name] = slug.split('/') as [string, string];
  return (
    <Section
      title="Live sessions"
      action={
        <Link to="/environments/$owner/$name" params={{ owner, name }} search={{ tab: 'sessions' }} className="link text-[12px]">
          Show sessions
        </Link>
      }
    >
      {slots.data?.environments.map((group) => (
        <SlotMeter key={group.version} group={group} />
      ))}
      {slots.data?.environments.length === 0 && <p className="text-ink-3">No slot is taken.</p>}
      {slots.error && <p className="text-bad">{slots.error.message}</p>}
    </Section>
  );
}

function Variant({
  environment: { owner, name },
  variant,
  alone,
}: {
  environment: EnvironmentView;
  variant: EnvironmentDiscoveryView['variants'][number];
  alone: boolean;
}) {
  const params = { owner, name };
  const { tools } = variant.tools;
  return (
    <Section title={alone ? 'Splits and tools' : `Variant ${variant.name}`}>
      <ul className="mb-2 text-[12px]">
        {variant.splits.map((split) => (
          <li key={split.name} className="flex items-baseline gap-2 py-[1px]">
            <Link
              to="/environments/$owner/$name"
              params={params}
              search={{ tab: 'tasks', variant: alone ? undefined : variant.name, split: split.name }}
              className="link"
            >
              {split.name}
            </Link>
            {split.name !== split.type && <span className="label">{split.type}</span>}
            <span className="ml-auto tabular-nums text-ink-2">
              {split.num_tasks === null ? 'Open-ended' : plural(split.num_tasks, 'task')}
            </span>
          </li>
        ))}
      </ul>
      <p className="flex flex-wrap gap-x-2 gap-y-1">
        {tools.map((tool) => (
          <Link
            key={tool.name}
            to="/environments/$owner/$name"
            params={params}
            search={{ tab: 'tools', variant: alone ? undefined : variant.name }}
            hash={`tool-${tool.name}`}
            className="mono text-[var(--role-tool)] hover:underline"
            title={tool.description}
          >
            {tool.name}
          </Link>
        ))}
        {tools.length === 0 && <span className="text-ink-3">No tool is available for all tasks. A task can add tools.</span>}
      </p>
    </Section>
  );
}

function Report({ environment: { owner, name, report, version } }: { environment: EnvironmentDetails }) {
  if (report === null) return null;
  return (
    <Section
      title="Report"
      action={
        <Link to="/environments/$owner/$name" params={{ owner, name }} search={{ tab: 'report' }} className="link text-[12px]">
          Show report
        </Link>
      }
    >
      <Details
        details={[
          ['Checks', summaryOf(report)],
          ...report.players.map((player): Detail => [
            player.name,
            `${formatReward(player.mean)} · ${formatShare(player.solved, 1)} solved`,
          ]),
          ['Reported by', 'the owner'],
          ['Version', report.version === version ? `${version}` : `${report.version}, not the newest`],
        ]}
      />
    </Section>
  );
}

function UsedBy({ owner, name }: { owner: string; name: string }) {
  const runs = useQuery(environmentRunsQuery(owner, name));
  const all = runs.data?.runs ?? [];
  if (all.length === 0) return null;
  const scored = all.reduce((sum, run) => sum + run.scored, 0);
  const mean = scored === 0 ? null : all.reduce((sum, run) => sum + (run.reward_mean ?? 0) * run.scored, 0) / scored;
  return (
    <Section title="Used by">
      <Details
        details={[
          ['Runs', formatCount(all.length)],
          ['Rollouts', formatCount(all.reduce((sum, run) => sum + run.rollouts, 0))],
          ['Mean reward', `${formatReward(mean)} · n ${formatCount(scored)}`],
        ]}
      />
    </Section>
  );
}

function Snippets({ environment }: { environment: EnvironmentView }) {
  const [format, setFormat] = useState<TaskRowFormat>('skyrl');
  const slug = `${environment.owner}/${environment.name}`;
  const snippet = `environment = client.environments.get(name="${slug}")\ntasks = environment.list_tasks(split="${environment.split_types[0] ?? 'train'}")`;
  const prepare = `palestra prepare-tasks --env ${slug}${format === 'skyrl' ? '' : ` --format ${format}`} --out tasks.${JSON_LINES_ROW_FORMATS.includes(format) ? 'jsonl' : 'parquet'}`;
  return (
    <>
      <Snippet title="Use it" text={snippet} />
      <Snippet title="Export its tasks" text={prepare}>
        <select
          className="input h-[26px] py-0 text-[12px]"
          aria-label="Trainer"
          value={format}
          onChange={(event) => setFormat(event.target.value as TaskRowFormat)}
        >
          {TASK_ROW_FORMATS.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </Snippet>
    </>
  );
}

/** `children`: controls beside the button that copies the text. */
const Snippet = ({ title, text, children }: { title: string; text: string; children?: ReactNode }) => (
  <Section
    title={title}
    action={
      <span className="flex items-center gap-2">
        {children}
        <CopyButton text={text} />
      </span>
    }
  >
    <pre className="code-block mt-2 whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</pre>
  </Section>
);
