import { LOG_SEVERITIES } from '@palestra/protocol';
import { Command, Option } from 'commander';
import { UsageError } from '../server-settings.ts';
import { addDefault, addExamples, addOutput, collect, lazy, positive } from './define.ts';
import { addHostingOptions } from './hosting-options.ts';
import { portOf } from './option-values.ts';

/** The argument of commands about one environment, which its author types in its folder. */
const HOSTED = 'environment (default: that of the current folder, in your namespace)';
const VERSION = 'number of the version; owner/name@3 is a version of an environment that is not in the current folder';

/** The commands for environments that the service builds and runs. */
export const hostingCommands = (): Command[] => [
  deployCommand(),
  deploysCommand(),
  logsCommand(),
  versionsCommand(),
  diffCommand(),
  promoteCommand(),
  rollbackCommand(),
  channelsCommand(),
  scaleCommand(),
  instancesCommand(),
  restartCommand(),
  secretsCommand(),
  gitCommand(),
];

function deployCommand(): Command {
  const command = new Command('deploy')
    .description('build an environment on the service as a new version, and run it there')
    .argument('[folder]', 'folder to upload, without .git, .env* and what .dockerignore names (default: current folder)')
    .option('--name <owner/name>', 'name (default: that of openenv.yaml, the folder, the repository or the image, in your namespace)')
    .option('--git <url>', 'a git repository, instead of a folder')
    .option('--ref <ref>', 'its branch, tag or commit (default: its default branch)')
    .option('--subdirectory <folder>', 'its folder with the environment')
    .option('--image <reference>', 'an image, instead of a folder')
    .option('--port <port>', 'port of the server in the image (default: the exposed port)', portOf)
    .option('--url <url>', 'a running server, instead of a folder; several URLs share the sessions; repeatable', collect)
    .option('--dockerfile <path>', 'Dockerfile in the folder (default: Dockerfile, then server/Dockerfile)')
    .option('--channel <name>', 'channel to promote when the version is ready', channelOf, 'stable')
    .option('--no-promote', 'promote no channel: sessions get the version only as owner/name@NUMBER')
    .option('--public', 'a new environment is visible to every organisation of the service, not only to yours', false)
    .option('--detach', 'do not wait for the end of the deploy', false)
    .action(lazy(async () => (await import('../commands/hosting/deploy.ts')).deploy));
  return addExamples(
    addOutput(addHostingOptions(command)),
    'palestra env deploy',
    'palestra env deploy guess --min-warm 1 --memory 512m',
    'palestra env deploy --git https://git.acme.example/envs.git --ref main --subdirectory guess',
    'palestra env deploy --image ghcr.io/acme/guess:1.0 --no-promote',
    'palestra env deploy guess --detach -o json | jq -r .id',
  );
}

function deploysCommand(): Command {
  const list = new Command('list')
    .description('list the deploys of an environment, newest first')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await import('../commands/hosting/deploys.ts')).listDeploys));
  const cancel = new Command('cancel')
    .description('cancel a deploy')
    .argument('<deploy>', 'id of the deploy')
    .action(lazy(async () => (await import('../commands/hosting/deploys.ts')).cancelDeploy));
  const deploys = new Command('deploys').description('list and cancel deploys');
  addDefault(deploys, addExamples(addOutput(list), 'palestra env deploys', 'palestra env deploys list acme/guess -o json'));
  deploys.addCommand(addExamples(addOutput(cancel), 'palestra env deploys cancel 0b0e2f0a-7c63-4a0b-9f6d-5d7d3a4a2f11'));
  return addExamples(deploys, 'palestra env deploys', 'palestra env deploys cancel 0b0e2f0a-7c63-4a0b-9f6d-5d7d3a4a2f11');
}

function logsCommand(): Command {
  const command = new Command('logs')
    .description('show what the instances of an environment, or the build of a deploy, wrote')
    .argument('[owner/name]', `${HOSTED}; owner/name@3, or @3, is the log of its version 3 only`)
    .option('-f, --follow', 'also show what is written from now on, until Ctrl-C', false)
    .option('--tail <count>', 'last lines to begin with, at most 10000 (default: all)', tailOf)
    .option('--instance <id>', 'this instance only')
    .addOption(new Option('--severity <severity>', 'lines of at least this severity').choices(LOG_SEVERITIES))
    .option('--search <text>', 'lines with this text, in any case')
    .option('--build', 'the build log of the last deploy', false)
    .option('--deploy <id>', 'the build log of this deploy')
    .action(lazy(async () => (await import('../commands/hosting/logs.ts')).showLogs));
  return addExamples(
    addOutput(command),
    'palestra env logs -f',
    'palestra env logs acme/guess@3 --severity error',
    'palestra env logs guess --build --search error -o jsonl | jq -r .text',
  );
}

function versionsCommand(): Command {
  const command = new Command('versions')
    .description('list the versions of an environment, newest first, with the channels that use them')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await import('../commands/hosting/versions.ts')).listVersions));
  return addExamples(addOutput(command), 'palestra env versions', 'palestra env versions acme/guess -o json');
}

function diffCommand(): Command {
  const command = new Command('diff')
    .description('show what changes between two versions for their clients: tools, tasks, and the prompt and rewards of a fixed episode')
    .argument('<from>', VERSION)
    .argument('<to>', 'number of the other version')
    .option('--fail-on-breaking', 'exit with code 5 if clients of the first version fail with the other one', false)
    .action(lazy(async () => (await import('../commands/hosting/versions.ts')).diffVersions));
  return addExamples(addOutput(command), 'palestra env diff 2 3', 'palestra env diff acme/guess@2 3 --fail-on-breaking');
}

function promoteCommand(): Command {
  const command = new Command('promote')
    .description('give new sessions a version; open sessions stay on theirs')
    .argument('<version>', VERSION)
    .option('--percent <percent>', 'share of new sessions; under 100 the version is a canary', percentOf, 100)
    .option('--channel <name>', 'channel that changes', channelOf, 'stable')
    .action(lazy(async () => (await import('../commands/hosting/versions.ts')).promote));
  return addExamples(addOutput(command), 'palestra env promote 3', 'palestra env promote acme/guess@3 --percent 10');
}

function rollbackCommand(): Command {
  const command = new Command('rollback')
    .description('end the canary of a channel, or return the channel to the version before')
    .argument('[owner/name]', HOSTED)
    .option('--channel <name>', 'channel that changes', channelOf, 'stable')
    .action(lazy(async () => (await import('../commands/hosting/versions.ts')).rollback));
  return addExamples(addOutput(command), 'palestra env rollback', 'palestra env rollback acme/guess --channel beta');
}

function channelsCommand(): Command {
  const command = new Command('channels')
    .description('list the channels of an environment, their canaries, and why they last changed')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await import('../commands/hosting/versions.ts')).listChannels));
  return addExamples(addOutput(command), 'palestra env channels', 'palestra env channels acme/guess -o json');
}

function scaleCommand(): Command {
  const command = new Command('scale')
    .description('show or change the number, limits and network of the instances of an environment')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await import('../commands/hosting/instances.ts')).scale));
  return addExamples(
    addOutput(addHostingOptions(command)),
    'palestra env scale',
    'palestra env scale acme/guess --min-warm 1 --max 8 --concurrency 32',
    'palestra env scale --egress pypi.org,files.pythonhosted.org',
  );
}

function instancesCommand(): Command {
  const command = new Command('instances')
    .description('list the instances of an environment, with their sessions, usage and restarts')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await import('../commands/hosting/instances.ts')).listInstances));
  return addExamples(addOutput(command), 'palestra env instances', "palestra env instances acme/guess -o json | jq '.instances[].state'");
}

function restartCommand(): Command {
  const command = new Command('restart')
    .description('replace an instance; its sessions end on the old one')
    .argument('<instance>', 'id of the instance')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await import('../commands/hosting/instances.ts')).restartInstance));
  return addExamples(addOutput(command), 'palestra env restart 0b0e2f0a-7c63-4a0b-9f6d-5d7d3a4a2f11 acme/guess');
}

function secretsCommand(): Command {
  const actions = () => import('../commands/hosting/secrets.ts');
  const secrets = new Command('secrets').description('manage the secrets of an environment, which its instances read as files');
  const list = new Command('list')
    .description('list the names of the secrets')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await actions()).listSecrets));
  const set = new Command('set')
    .description('set a secret to what standard input has, without its last line break')
    .argument('<secret>', 'name of the secret')
    .argument('[owner/name]', HOSTED)
    .option('--from-file <file>', 'read the value from this file, as it is')
    .action(lazy(async () => (await actions()).setSecret));
  const remove = new Command('delete')
    .description('delete a secret')
    .argument('<secret>', 'name of the secret')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await actions()).deleteSecret));
  addDefault(secrets, addExamples(addOutput(list), 'palestra env secrets', 'palestra env secrets list acme/guess -o json'));
  secrets.addCommand(
    addExamples(
      addOutput(set),
      'palestra env secrets set API_KEY # asks for the value',
      'palestra env secrets set CERTIFICATE acme/guess --from-file tls.pem',
    ),
  );
  secrets.addCommand(addExamples(addOutput(remove), 'palestra env secrets delete API_KEY'));
  return addExamples(secrets, 'palestra env secrets', 'palestra env secrets set API_KEY');
}

function gitCommand(): Command {
  const actions = () => import('../commands/hosting/git.ts');
  const git = new Command('git').description('deploy each push to a git repository');
  const show = new Command('show')
    .description('show the linked repository and its webhook')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await actions()).showGitLink));
  const link = new Command('link')
    .description('link a repository: each push to its branch is deployed; prints the webhook for the git server')
    .argument('<url>', 'URL of the repository')
    .argument('[owner/name]', HOSTED)
    .option('--ref <branch>', 'branch (default: its default branch)')
    .option('--subdirectory <folder>', 'its folder with the environment')
    .option('--channel <name>', 'channel that each deploy promotes', channelOf, 'stable')
    .option('--no-promote', 'promote no channel')
    .action(lazy(async () => (await actions()).linkGit));
  const secret = new Command('secret')
    .description('replace the secret of the webhook, and print it')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await actions()).replaceGitSecret));
  const unlink = new Command('unlink')
    .description('remove the link; pushes are ignored from then on')
    .argument('[owner/name]', HOSTED)
    .action(lazy(async () => (await actions()).unlinkGit));
  addDefault(git, addExamples(addOutput(show), 'palestra env git', 'palestra env git show acme/guess -o json'));
  git.addCommand(
    addExamples(addOutput(link), 'palestra env git link https://git.acme.example/envs.git acme/guess --ref main --subdirectory guess'),
  );
  git.addCommand(addExamples(addOutput(secret), 'palestra env git secret acme/guess'));
  git.addCommand(addExamples(addOutput(unlink), 'palestra env git unlink acme/guess'));
  return addExamples(git, 'palestra env git', 'palestra env git link https://git.acme.example/envs.git acme/guess');
}

function channelOf(text: string): string {
  if (!/^[a-z][a-z0-9-]{0,31}$/.test(text))
    throw new UsageError(`Invalid channel "${text}". Expected 1 to 32 lower-case letters, digits or "-", with a letter first.`);
  return text;
}

function percentOf(text: string): number {
  const percent = Number(text);
  if (!/^\d+$/.test(text) || percent < 1 || percent > 100)
    throw new UsageError(`Invalid --percent "${text}". Expected a whole number from 1 to 100.`);
  return percent;
}

function tailOf(text: string): number {
  const count = positive(text);
  if (count > 10_000) throw new UsageError(`Invalid --tail "${text}". Expected at most 10000.`);
  return count;
}
