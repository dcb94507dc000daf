import { type EnvironmentDiscoveryView, type EnvironmentView, stringifyJson, type ToolSpec } from '@palestra/protocol';
import { environmentName } from '../environment-name.ts';
import { printable, type Printed, printList, printOne, printTable } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';

export async function listEnvironments(options: Printed & { owner?: string; search?: string; limit: number }): Promise<void> {
  const { owner, search, limit } = options;
  const { environments, total } = await withClient((client) => client.environments.list({ owner, search, limit }));
  await printList(
    options,
    environments,
    [
      ['environment', ({ owner, name }) => `${owner}/${name}`],
      ['status', ({ status }) => status],
      ['tasks', ({ total_task_count }) => total_task_count],
      ['description', ({ description }) => description],
    ],
    environments.length < total ? `${environments.length} of ${total} environments` : undefined,
  );
}

export async function getEnvironment(target: string, options: Printed): Promise<void> {
  const { view, discovery } = await withClient(async (client) => {
    const environment = await environmentName(client, target);
    return { view: await client.environments.get(environment), discovery: await client.environments.discovery(environment) };
  });
  await printOne(options, { ...view, variants: discovery.variants }, () => printEnvironment(view, discovery));
}

function printEnvironment(view: EnvironmentView, discovery: EnvironmentDiscoveryView): void {
  const { owner, name, status, status_detail, description, is_private } = view;
  process.stdout.write(
    printable(`${owner}/${name} (${is_private ? 'private' : 'public'}, ${status}${status_detail ? `: ${status_detail}` : ''})`) + '\n',
  );
  if (description) process.stdout.write(`${printable(description)}\n`);
  if (view.sessions) process.stdout.write(`sessions: ${printable(JSON.stringify(view.sessions))}\n`);
  for (const variant of discovery.variants) {
    process.stdout.write(`\nvariant ${printable(variant.name)}${variant.is_default ? ' (default)' : ''}\n`);
    printTable(
      ['split', 'type', 'tasks'],
      variant.splits.map((split) => [split.name, split.type, split.num_tasks]),
    );
  }
}

interface AddOptions extends Printed {
  url: string;
  description: string;
  public: boolean;
}

export async function addEnvironment(target: string, options: AddOptions): Promise<void> {
  const { url, description } = options;
  if (!URL.canParse(url)) throw new UsageError(`Invalid URL "${url}".`);
  const added = await withClient(async (client) => {
    const [namespace, name] = (await environmentName(client, target)).split('/') as [string, string];
    return client.environments.add({ namespace, name, url, description, isPrivate: !options.public });
  });
  await printOne(options, added, () => void process.stdout.write(`${printable(`${added.owner}/${added.name}`)}\n`));
}

export async function listTasks(target: string, options: Printed & { split: string; limit: number }): Promise<void> {
  const { split, limit } = options;
  const page = await withClient(async (client) => client.environments.tasks(await environmentName(client, target), { split, limit }));
  await printList(
    options,
    page.tasks,
    [
      ['index', ({ index }) => index],
      ['task_spec', ({ task_spec }) => stringifyJson(task_spec)],
    ],
    `${page.tasks.length} of ${page.total ?? 'an unknown number of'} tasks`,
  );
}

export async function listTools(target: string, options: Printed & { variant?: string }): Promise<void> {
  const { tools } = await withClient(async (client) => client.environments.tools(await environmentName(client, target), options.variant));
  await printList(options, tools, [
    ['name', ({ name }) => name],
    ['arguments', argumentsOf],
    ['description', ({ description }) => description],
  ]);
}

/** Names of the arguments of a tool, the optional ones with "?". */
function argumentsOf({ input_schema: schema }: ToolSpec): string {
  const { properties, required } = (schema ?? {}) as { properties?: unknown; required?: unknown };
  const needed = Array.isArray(required) ? required : [];
  return Object.keys((properties as object | undefined) ?? {})
    .map((name) => (needed.includes(name) ? name : `${name}?`))
    .join(', ');
}
