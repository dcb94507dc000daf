import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { discoveryQuery, environmentsQuery } from '../../data/queries.ts';
import { ToolCard } from '../../environments/ToolCard.tsx';
import { UNKNOWN } from '../../format/number.ts';
import { JsonTree } from '../../text/JsonTree.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import type { PanelProps } from './panel-props.ts';
import { PropertyList, Section } from './parts.tsx';

const isNonEmptyObject = (value: unknown): value is object => value !== null && typeof value === 'object' && Object.keys(value).length > 0;

/** Tools of an environment that is registered here. */
function Tools({ owner, name, variant }: { owner: string; name: string; variant: string | null }) {
  const discovery = useQuery(discoveryQuery(owner, name));
  if (discovery.error)
    return <p className="text-[12px] text-ink-3">The tools of the environment could not be loaded: {discovery.error.message}</p>;
  const variants = discovery.data?.variants ?? [];
  const toolset = (variants.find((candidate) => candidate.name === variant) ?? variants[0])?.tools;
  return (toolset?.tools ?? []).map((tool) => (
    <ToolCard key={tool.name} tool={tool} terminal={toolset?.terminal_tool?.name === tool.name} />
  ));
}

export function TaskTab({ header }: PanelProps) {
  const [owner, name] = header.environment?.split('/') ?? [];
  const registered = useQuery({ ...environmentsQuery(name ?? ''), enabled: name !== undefined });
  const environment = registered.data?.environments.find((candidate) => candidate.owner === owner && candidate.name === name);
  return (
    <>
      <Section title="Task">
        <PropertyList
          items={[
            [
              'Environment',
              environment ? (
                <Link key="e" to="/environments/$owner/$name" params={{ owner: owner!, name: name! }} search={{}} className="link">
                  {header.environment}
                </Link>
              ) : (
                <PlainText key="e" text={header.environment ?? UNKNOWN} />
              ),
            ],
            ['Split', <PlainText key="s" text={header.split ?? UNKNOWN} />],
            ['Index', header.task_index ?? UNKNOWN],
            ...(header.variant === null ? [] : ([['Variant', header.variant]] as const)),
            ...(header.task === null
              ? []
              : ([
                  [
                    'All steps',
                    <Link
                      key="t"
                      to="/$org/runs/$run/tasks/$task"
                      params={{ org: header.run.org, run: header.run.name, task: header.task }}
                      search={{}}
                      className="link"
                    >
                      Show this task in the run
                    </Link>,
                  ],
                ] as const)),
          ]}
        />
      </Section>
      <Section title="Task spec">
        {header.task_spec === null ? (
          <p className="text-[12px] text-ink-3">The trainer sent no task spec.</p>
        ) : typeof header.task_spec === 'object' ? (
          <JsonTree value={header.task_spec} />
        ) : (
          <div className="mono whitespace-pre-wrap break-words">
            <PlainText text={String(header.task_spec)} />
          </div>
        )}
      </Section>
      {(
        [
          ['Metadata', header.metadata],
          ['Run info', header.run_info],
          ['Rollout info', header.rollout_info],
        ] as const
      ).map(
        ([title, value]) =>
          isNonEmptyObject(value) && (
            <Section key={title} title={title}>
              <JsonTree value={value} openLevels={1} />
            </Section>
          ),
      )}
      {environment && (
        <Section title="Tools of the environment">
          <Tools owner={owner!} name={name!} variant={header.variant} />
        </Section>
      )}
    </>
  );
}
