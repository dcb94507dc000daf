import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { Command } from 'cmdk';
import { type ReactNode, useDeferredValue } from 'react';
import { switchOrganisation } from '../data/organisation.ts';
import { environmentsQuery, meQuery, runsQuery } from '../data/queries.ts';
import { plural } from '../format/number.ts';
import { switchTheme } from '../theme/theme.ts';

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
const group =
  '[&_[cmdk-group-heading]]:px-2 [&_[cmdk-group-heading]]:py-1 [&_[cmdk-group-heading]]:text-[11px] [&_[cmdk-group-heading]]:text-ink-3';
const runPages = [
  ['/$org/runs/$run', 'Overview'],
  ['/$org/runs/$run/rollouts', 'Rollouts'],
  ['/$org/runs/$run/groups', 'Groups'],
  ['/$org/runs/$run/tasks', 'Tasks'],
  ['/$org/runs/$run/tools', 'Tools'],
  ['/$org/runs/$run/failures', 'Failures'],
  ['/$org/runs/$run/config', 'Config'],
] as const;
const pages = [
  ['/sessions', 'Sessions'],
  ['/environments', 'Environments'],
  ['/reviews', 'Review'],
  ['/exports', 'Exports'],
  ['/alerts', 'Alerts'],
  ['/check', 'Check an upload'],
  ['/keys', 'API keys'],
  ['/settings', 'Settings'],
] as const;

function Item({ value, hint, onSelect, children }: { value: string; hint?: string; onSelect: () => void; children: ReactNode }) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex h-[28px] cursor-pointer items-center gap-2 rounded-[3px] px-2 data-[selected=true]:bg-paper-2"
    >
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {hint && <span className="label flex-none">{hint}</span>}
    </Command.Item>
  );
}

/** The dialog of Ctrl K: goes to a page, run, environment or rollout by a part of its name. */
export function PaletteDialog({ text, setText, close }: { text: string; setText: (text: string) => void; close: () => void }) {
  const search = useDeferredValue(text.trim());
  const me = useQuery(meQuery);
  const runs = useQuery(runsQuery(search));
  const environments = useQuery(environmentsQuery(search));
  const here = useParams({ strict: false }) as { org?: string; run?: string };
  const navigate = useNavigate();
  const go = (to: string, params: Record<string, string> = {}) => {
    close();
    void navigate({ to, params, search: {} } as never);
  };
  const org = me.data?.org.name ?? here.org ?? '';
  return (
    <Command label="Go to" className="flex flex-col">
      <Command.Input
        value={text}
        onValueChange={setText}
        autoFocus
        data-autofocus
        placeholder="Page, run, environment or rollout id"
        className="input mb-2 h-[34px] w-full"
      />
      <Command.List className="max-h-[50vh] overflow-y-auto">
        <Command.Empty className="px-2 py-3 text-ink-3">No results</Command.Empty>
        {uuid.test(search) && (
          <Command.Group heading="Rollout" className={group}>
            <Item value={search} onSelect={() => go('/rollout/$id', { id: search })}>
              Rollout {search}
            </Item>
          </Command.Group>
        )}
        {here.run !== undefined && here.org !== undefined && (
          <Command.Group heading="This run" className={group}>
            {runPages.map(([to, name]) => (
              <Item key={to} value={`this run ${name}`} onSelect={() => go(to, { org: here.org!, run: here.run! })}>
                {name}
              </Item>
            ))}
          </Command.Group>
        )}
        <Command.Group heading="Runs" className={group}>
          {runs.data?.runs.slice(0, 12).map((run) => (
            <Item
              key={run.id}
              value={`run ${run.name}`}
              hint={plural(run.num_rollouts, 'rollout')}
              onSelect={() => go('/$org/runs/$run', { org: run.org, run: run.name })}
            >
              {run.name}
            </Item>
          ))}
          <Item value="all runs" onSelect={() => go('/$org/runs', { org })}>
            All runs
          </Item>
        </Command.Group>
        <Command.Group heading="Environments" className={group}>
          {environments.data?.environments.slice(0, 12).map((environment) => (
            <Item
              key={`${environment.owner}/${environment.name}`}
              value={`environment ${environment.owner}/${environment.name}`}
              onSelect={() => go('/environments/$owner/$name', { owner: environment.owner, name: environment.name })}
            >
              {environment.owner}/{environment.name}
            </Item>
          ))}
        </Command.Group>
        {me.data && me.data.organisations.length > 1 && (
          <Command.Group heading="Organisations" className={group}>
            {me.data.organisations
              .filter(({ name }) => name !== me.data.org.name)
              .map(({ id, name }) => (
                <Item key={id} value={`organisation switch to ${name}`} onSelect={() => switchOrganisation(name)}>
                  Switch to {name}
                </Item>
              ))}
          </Command.Group>
        )}
        <Command.Group heading="Pages" className={group}>
          {pages.map(([to, name]) => (
            <Item key={to} value={name} onSelect={() => go(to)}>
              {name}
            </Item>
          ))}
          <Item value="documentation" onSelect={() => location.assign('/docs/')}>
            Documentation
          </Item>
          <Item
            value="theme light dark"
            onSelect={() => {
              switchTheme();
              close();
            }}
          >
            Switch theme
          </Item>
        </Command.Group>
      </Command.List>
    </Command>
  );
}
