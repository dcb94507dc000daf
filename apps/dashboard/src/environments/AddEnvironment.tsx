import type { EnvironmentView } from '@palestra/protocol';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Tabs } from 'radix-ui';
import { type FormEvent, useState } from 'react';
import { addEnvironment, deleteEnvironment, readEnvironment, type ServerKind, trySession } from '../data/environments.ts';
import { hostingOfferQuery } from '../data/hosting/hosting.ts';
import { plural } from '../format/number.ts';
import { SkeletonRows } from '../frame/states.tsx';
import { DeployForm } from '../hosting/DeployForm.tsx';
import { AddFromLibrary } from './AddFromLibrary.tsx';
import { pythonLibraries } from './python-libraries.ts';

const KINDS: readonly [kind: ServerKind, name: string, example: string][] = [
  ['remote', 'ORS', 'http://127.0.0.1:8000'],
  ['openenv', 'OpenEnv', 'http://127.0.0.1:8000'],
  ['mcp', 'MCP', 'http://127.0.0.1:8000/mcp'],
];

interface Step {
  name: string;
  state: 'running' | 'done' | 'failed';
  detail?: string;
}

const MARKS = { running: ['…', 'text-ink-3', 'running'], done: ['✓', 'text-good', 'done'], failed: ['✕', 'text-bad', 'failed'] } as const;

const tab =
  'h-[28px] border-b-2 border-transparent px-[9px] text-ink-2 hover:text-ink-1 data-[state=active]:border-accent data-[state=active]:font-[550] data-[state=active]:text-ink-1';

/** `source`: the tab that is open first: `deploy`, `server` or the id of a library. Where the service hosts nothing, `deploy` is `server`. */
export function AddEnvironment({ source }: { source: string }) {
  const offer = useQuery(hostingOfferQuery);
  if (offer.isPending) return <SkeletonRows count={4} />;
  const hosts = offer.data?.hosts === true;
  return (
    <Tabs.Root defaultValue={source === 'deploy' && !hosts ? 'server' : source} className="min-w-0">
      {!hosts && <p className="mb-2 text-ink-3">{offer.data?.detail ?? offer.error?.message}</p>}
      <Tabs.List aria-label="Source" className="mb-3 flex flex-wrap border-b border-line">
        {hosts && (
          <Tabs.Trigger value="deploy" className={tab}>
            Deploy
          </Tabs.Trigger>
        )}
        <Tabs.Trigger value="server" className={tab}>
          Running server
        </Tabs.Trigger>
        {pythonLibraries.map(({ id }) => (
          <Tabs.Trigger key={id} value={id} className={tab}>
            {id}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      {hosts && (
        <Tabs.Content value="deploy">
          <DeployForm environment={null} />
        </Tabs.Content>
      )}
      <Tabs.Content value="server">
        <AddServer />
      </Tabs.Content>
      {pythonLibraries.map((library) => (
        <Tabs.Content key={library.id} value={library.id}>
          <AddFromLibrary library={library} />
        </Tabs.Content>
      ))}
    </Tabs.Root>
  );
}

/** Registers a running server by its URL, then checks it: its address, its protocol, its splits and tools, and a session. */
function AddServer() {
  const client = useQueryClient();
  const [kind, setKind] = useState<ServerKind>('remote');
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [steps, setSteps] = useState<readonly Step[]>([]);
  const [added, setAdded] = useState<EnvironmentView | null>(null);
  const [busy, setBusy] = useState(false);
  const server = KINDS.find(([one]) => one === kind)![1];

  /** Shows a step while it runs, and how it ended. */
  const step = async <T,>(title: string, work: () => Promise<T>, detail: (result: T) => string = () => ''): Promise<T> => {
    setSteps((before) => [...before, { name: title, state: 'running' }]);
    const end = (part: Partial<Step>) => setSteps((before) => [...before.slice(0, -1), { name: title, state: 'done', ...part }]);
    try {
      const result = await work();
      end({ detail: detail(result) });
      return result;
    } catch (error) {
      end({ state: 'failed', detail: (error as Error).message });
      throw error;
    }
  };
  const check = async () => {
    const environment = await step('The name is free, the address is allowed, and a server answers there', () =>
      addEnvironment(name.trim(), { kind, url: url.trim() }),
    );
    setAdded(environment);
    const { variants } = await step(
      `The server speaks ${server}`,
      () => readEnvironment(environment),
      (discovery) =>
        discovery.variants
          .map(
            ({ splits, tools }) => `${plural(tools.tools.length, 'tool')}, ${splits.map((split) => split.name).join(', ') || 'no split'}`,
          )
          .join('; '),
    );
    const variant = variants.find(({ is_default }) => is_default) ?? variants[0];
    const split = variant?.splits.find(({ num_tasks }) => num_tasks !== 0) ?? variant?.splits[0];
    await step(
      'It has tasks',
      async () => {
        if (!variant || !split) throw new Error('The server lists no splits, so no task can be opened.');
        if (split.num_tasks === 0) throw new Error('Every split is empty, so no task can be opened.');
        return split;
      },
      ({ num_tasks, name: of }) => (num_tasks === null ? of : `${plural(num_tasks, 'task')} in ${of}`),
    );
    await step('A session opens, gives its prompt and closes', () => trySession(environment, variant!.name, split!.name));
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setSteps([]);
    setAdded(null);
    setBusy(true);
    await check().catch(() => {});
    setBusy(false);
    await client.invalidateQueries({ queryKey: ['environments'] });
  };
  const remove = async (environment: EnvironmentView) => {
    await step('Environment removed', () => deleteEnvironment(environment)).catch(() => {});
    setAdded(null);
    await client.invalidateQueries({ queryKey: ['environments'] });
  };
  const failed = steps.some(({ state }) => state === 'failed');
  return (
    <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-3">
      <fieldset className="flex gap-4">
        <legend className="label mb-1">Protocol of the server</legend>
        {KINDS.map(([one, title]) => (
          <label key={one} className="flex items-center gap-2">
            <input type="radio" name="kind" className="accent-[var(--accent)]" checked={kind === one} onChange={() => setKind(one)} />
            {title}
          </label>
        ))}
      </fieldset>
      <label className="flex flex-col gap-[2px]">
        <span className="label">URL at which this service reaches the server</span>
        <input
          className="input mono"
          type="url"
          required
          data-autofocus
          placeholder={KINDS.find(([one]) => one === kind)![2]}
          value={url}
          onChange={(event) => setUrl(event.target.value)}
        />
      </label>
      <label className="flex flex-col gap-[2px]">
        <span className="label">Name: 3 to 64 letters, digits, “-” or “_”</span>
        <input
          className="input"
          required
          pattern="[A-Za-z0-9_\-]{3,64}"
          placeholder="whodunit"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <ol aria-label="Checks" aria-live="polite" className="flex flex-col gap-1 empty:hidden">
        {steps.map(({ name: title, state, detail }) => (
          <li key={title} className="grid grid-cols-[18px_minmax(0,1fr)]">
            <span className={MARKS[state][1]} aria-label={MARKS[state][2]} role="img">
              {MARKS[state][0]}
            </span>
            <span className="break-words">
              {title}
              {detail && <span className={state === 'failed' ? 'text-bad' : 'text-ink-3'}>: {detail}</span>}
            </span>
          </li>
        ))}
      </ol>
      <div className="flex items-center justify-end gap-2">
        {added && failed && !busy && (
          <button type="button" className="button" onClick={() => void remove(added)}>
            Remove environment
          </button>
        )}
        {added && !busy && (
          <Link to="/environments/$owner/$name" params={{ owner: added.owner, name: added.name }} search={{}} className="button">
            Open {added.owner}/{added.name}
          </Link>
        )}
        <button type="submit" className="button primary" disabled={busy}>
          Add and check
        </button>
      </div>
    </form>
  );
}
