import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { EnvironmentDiscoveryView, EnvironmentView } from '@palestra/protocol';
import type { ReactNode } from 'react';
import { discoveryQuery, environmentQuery } from '../data/queries.ts';
import { formatCount, plural } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Crumb, Slash, TopBar } from '../frame/page.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { LiveSessions } from '../sessions/LiveSessions.tsx';
import { Markdown } from '../text/Markdown.tsx';
import { EnvironmentStatus } from './EnvironmentStatus.tsx';
import { TaskBrowser } from './TaskBrowser.tsx';
import { ToolCard } from './ToolCard.tsx';

type Variant = EnvironmentDiscoveryView['variants'][number];

function Section({ title, note, action, children }: { title: string; note?: ReactNode; action?: ReactNode; children: ReactNode }) {
  return (
    <section className="px-4 pb-4 pt-3">
      <h2 className="flex items-baseline gap-2 border-b border-line pb-[6px] strong">
        {title} <span className="label">{note}</span>
        {action && <span className="ml-auto">{action}</span>}
      </h2>
      {children}
    </section>
  );
}

function Discovered({ environment, variants }: { environment: EnvironmentView; variants: Variant[] }) {
  const { owner, name } = environment;
  const search = useSearch({ from: '/environments/$owner/$name' });
  const navigate = useNavigate({ from: '/environments/$owner/$name' });
  const variant = variants.find((one) => one.name === search.variant) ?? variants.find((one) => one.is_default) ?? variants[0];
  if (!variant) return <p className="p-4 text-ink-2">The server behind this environment offers no environment at all.</p>;
  const split = variant.splits.find((one) => one.name === search.split) ?? variant.splits[0];
  const tabs = 'flex h-[28px] items-center gap-2 rounded-[4px] px-2 hover:bg-paper-2';
  return (
    <>
      {variants.length > 1 && (
        <nav aria-label="Variants" className="flex flex-wrap gap-1 border-b border-line px-3 py-1">
          {variants.map((one) => (
            <button
              key={one.name}
              type="button"
              aria-pressed={one === variant}
              onClick={() => void navigate({ search: { variant: one.name } })}
              className={`${tabs} ${one === variant ? 'bg-paper-2 strong' : 'text-ink-2'}`}
            >
              {one.name}
            </button>
          ))}
        </nav>
      )}
      <Section title="Tools" note={plural(variant.tools.tools.length, 'tool')}>
        {variant.tools.tools.map((tool) => (
          <ToolCard key={tool.name} tool={tool} terminal={variant.tools.terminal_tool?.name === tool.name} />
        ))}
        {variant.tools.tools.length === 0 && <p className="py-2 text-ink-3">No tool for every task; tasks may bring tools of their own.</p>}
      </Section>
      <Section title="Tasks" note={plural(variant.splits.length, 'split')}>
        <div role="group" aria-label="Splits" className="flex flex-wrap gap-1 py-2">
          {variant.splits.map((one) => (
            <button
              key={one.name}
              type="button"
              aria-pressed={one === split}
              onClick={() => void navigate({ search: (before) => ({ ...before, split: one.name, start: undefined }) })}
              className={`${tabs} ${one === split ? 'bg-paper-2 strong' : 'text-ink-2'}`}
            >
              {one.name}
              {one.name !== one.type && <span className="label">{one.type}</span>}
              <span className="num text-ink-3">{formatCount(one.num_tasks)}</span>
            </button>
          ))}
        </div>
        {split ? (
          <TaskBrowser
            owner={owner}
            name={name}
            variant={variant.name}
            split={split.name}
            start={search.start ?? 0}
            go={(start) => void navigate({ search: (before) => ({ ...before, start: start || undefined }) })}
          />
        ) : (
          <p className="py-2 text-ink-3">This environment names no split.</p>
        )}
      </Section>
    </>
  );
}

function Facts({ environment }: { environment: EnvironmentView }) {
  const slug = `${environment.owner}/${environment.name}`;
  const snippet = `environment = client.environments.get(name="${slug}")\ntasks = environment.list_tasks(split="${environment.split_types[0] ?? 'train'}")`;
  const prepare = `palestra prepare-tasks --env ${slug} --output tasks.parquet`;
  return (
    <aside className="border-l border-line max-[1000px]:border-l-0 max-[1000px]:border-t" aria-label="About this environment">
      <Section title="About">
        <dl className="grid grid-cols-[88px_minmax(0,1fr)] gap-x-3 gap-y-[3px] pt-2 text-[12px]">
          <dt className="text-ink-3">status</dt>
          <dd>
            <EnvironmentStatus environment={environment} />
          </dd>
          {environment.status_detail && (
            <>
              <dt className="text-ink-3">detail</dt>
              <dd className="break-words">{environment.status_detail}</dd>
            </>
          )}
          <dt className="text-ink-3">runs as</dt>
          <dd className="break-all">{environment.source.url ?? environment.source.kind}</dd>
          <dt className="text-ink-3">tasks</dt>
          <dd>{formatCount(environment.total_task_count)}</dd>
          <dt className="text-ink-3">visibility</dt>
          <dd>{environment.is_private ? 'private' : 'public'}</dd>
          <dt className="text-ink-3">updated</dt>
          <dd>
            <Age iso={environment.updated_at} />
          </dd>
        </dl>
      </Section>
      {[
        ['Use it', snippet],
        ['Export its tasks', prepare],
      ].map(([title, text]) => (
        <Section key={title} title={title!} action={<CopyButton text={text!} />}>
          <pre className="code-block mt-2 whitespace-pre-wrap [overflow-wrap:anywhere]">{text}</pre>
        </Section>
      ))}
    </aside>
  );
}

export function EnvironmentPage() {
  const { owner, name } = useParams({ from: '/environments/$owner/$name' });
  const environment = useQuery(environmentQuery(owner, name));
  const discovery = useQuery(discoveryQuery(owner, name));
  const bar = (
    <TopBar
      title={`${owner}/${name}`}
      crumbs={
        <>
          <Link to="/environments" search={{}} className="hover:text-ink-1">
            Environments
          </Link>
          <Slash />
          <span>{owner}</span>
          <Slash />
          <Crumb>{name}</Crumb>
        </>
      }
    >
      {environment.data && <EnvironmentStatus environment={environment.data} />}
    </TopBar>
  );
  if (environment.error || !environment.data)
    return (
      <>
        {bar}
        {environment.error ? <ErrorState error={environment.error} retry={() => void environment.refetch()} /> : <SkeletonRows />}
      </>
    );
  const readme = environment.data.readme_content;
  return (
    <>
      {bar}
      <div className="grid min-h-full grid-cols-[minmax(0,1fr)_320px] max-[1000px]:grid-cols-1">
        <div className="min-w-0">
          <div className="border-b border-line px-4 py-4">
            {readme ? (
              <Markdown source={readme} className="max-w-[84ch] text-[14px] leading-[22px]" />
            ) : (
              <p className="max-w-[84ch] text-[14px] leading-[22px]">
                {environment.data.description || 'No description and no README card.'}
              </p>
            )}
          </div>
          <LiveSessions environment={`${owner}/${name}`} />
          {discovery.error ? (
            <ErrorState error={discovery.error} retry={() => void discovery.refetch()} />
          ) : discovery.data ? (
            <Discovered environment={environment.data} variants={discovery.data.variants} />
          ) : (
            <SkeletonRows />
          )}
        </div>
        <Facts environment={environment.data} />
      </div>
    </>
  );
}
