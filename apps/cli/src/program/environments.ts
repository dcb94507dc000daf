import { Command } from 'commander';
import { addExamples, addOutput, ENVIRONMENT_ARGUMENT, lazy, positive } from './define.ts';
import { hostingCommands } from './hosting.ts';
import { localEnvironmentCommands } from './local-environments.ts';
import { setCommand } from './session-policy.ts';

const actions = () => import('../commands/environments.ts');

export function environmentsCommand(): Command {
  const environments = new Command('env').alias('environments').description('create, check, serve, deploy, register and list environments');
  for (const command of [...localEnvironmentCommands(), ...hostingCommands()]) environments.addCommand(command);
  const list = new Command('list')
    .description('list environments')
    .option('--owner <owner>', 'environments of this organisation')
    .option('--search <text>', 'environments whose name or description contains this text')
    .option('--limit <count>', 'maximum environments', positive, 100)
    .action(lazy(async () => (await actions()).listEnvironments));
  const get = new Command('get')
    .description('show an environment with its splits')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .action(lazy(async () => (await actions()).getEnvironment));
  const add = new Command('add')
    .description('register a running ORS server ("push --url" also registers OpenEnv and MCP servers)')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .requiredOption('--url <url>', 'base URL of the server')
    .option('--description <text>', 'description', '')
    .option('--public', 'visible to every organisation of the service, not only to yours', false)
    .action(lazy(async () => (await actions()).addEnvironment));
  const tasks = new Command('tasks')
    .description('show the tasks of a split')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .option('--split <name>', 'split to show', 'train')
    .option('--limit <count>', 'maximum tasks', positive, 10)
    .action(lazy(async () => (await actions()).listTasks));
  const tools = new Command('tools')
    .description('show the tools of an environment')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .option('--variant <name>', 'variant of the environment (default: the first)')
    .action(lazy(async () => (await actions()).listTools));
  const rest = [
    addExamples(addOutput(list), 'palestra env list', "palestra env list --owner palestra -o json | jq '.[].name'"),
    addExamples(addOutput(get), 'palestra env get palestra/whodunit'),
    addExamples(addOutput(add), 'palestra env add acme/guess --url http://127.0.0.1:9000'),
    setCommand(),
    addExamples(addOutput(tasks), 'palestra env tasks palestra/math --split test', 'palestra env tasks guess -o jsonl'),
    addExamples(addOutput(tools), 'palestra env tools palestra/ctf', 'palestra env tools palestra/ctf -o json'),
  ];
  for (const command of rest) environments.addCommand(command);
  return addExamples(
    environments,
    'palestra env init guess',
    'palestra env deploy guess',
    'palestra env logs guess -f',
    'palestra env list',
  );
}
