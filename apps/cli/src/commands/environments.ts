import { Command } from 'commander';
import { printTable, printable } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';
import { initCommand } from './env/init.ts';
import { pushCommand } from './env/push.ts';
import { serveCommand } from './env/serve.ts';
import { validateCommand } from './env/validate.ts';
import { setCommand } from './environment-policy.ts';

export function environmentCommands(): Command {
  const command = new Command('env').alias('environments').description('create, check, serve, register and list environments');
  for (const local of [initCommand(), validateCommand(), serveCommand(), pushCommand()]) command.addCommand(local);
  command.command('list').option('--owner <owner>').option('--search <text>').action(list);
  command.command('get').argument('<owner/name>').action(get);
  command
    .command('add')
    .description('register a running ORS server ("push --url" also registers OpenEnv and MCP servers)')
    .argument('<owner/name>', 'or a name in your namespace')
    .requiredOption('--url <url>', 'base URL of the server')
    .option('--description <text>', '', '')
    .option('--public', 'visible to every organisation of the service, not only to yours', false)
    .action(add);
  command.addCommand(setCommand());
  command
    .command('tasks')
    .argument('<owner/name>')
    .option('--split <name>', 'split', 'train')
    .option('--limit <count>', '', Number, 10)
    .action(tasks);
  command.command('tools').argument('<owner/name>').option('--variant <name>').action(tools);
  return command;
}

async function list(options: { owner?: string; search?: string }): Promise<void> {
  const { environments } = await withClient((client) => client.environments.list({ ...options, limit: 100 }));
  printTable(
    ['environment', 'status', 'tasks', 'description'],
    environments.map(({ owner, name, status, total_task_count, description }) => [
      `${owner}/${name}`,
      status,
      total_task_count,
      description,
    ]),
  );
}

async function get(environment: string): Promise<void> {
  const { view, discovery } = await withClient(async (client) => ({
    view: await client.environments.get(environment),
    discovery: await client.environments.discovery(environment),
  }));
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

async function add(target: string, options: { url: string; description: string; public: boolean }): Promise<void> {
  const [first, second, ...rest] = target.split('/');
  if (!first || rest.length > 0 || second === '') throw new UsageError(`Invalid environment name "${target}". Expected owner/name.`);
  const name = second === undefined ? { name: first } : { namespace: first, name: second };
  const { url, description } = options;
  const added = await withClient((client) => client.environments.add({ ...name, url, description, isPrivate: !options.public }));
  process.stdout.write(`${added.owner}/${added.name}\n`);
}

async function tasks(environment: string, options: { split: string; limit: number }): Promise<void> {
  const page = await withClient((client) => client.environments.tasks(environment, { split: options.split, limit: options.limit }));
  for (const { index, task_spec } of page.tasks) process.stdout.write(`${index}\t${JSON.stringify(task_spec)}\n`);
  process.stderr.write(`${page.tasks.length} of ${page.total ?? 'an unknown number of'} tasks\n`);
}

async function tools(environment: string, options: { variant?: string }): Promise<void> {
  const answer = await withClient((client) => client.environments.tools(environment, options.variant));
  for (const tool of answer.tools) process.stdout.write(`${JSON.stringify(tool)}\n`);
}
