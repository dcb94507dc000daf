import { Command, Option } from 'commander';
import { addLibraryOptions } from './library-options.ts';
import { addContainerOptions } from './container-options.ts';
import { addExamples, addOutput, lazy } from './define.ts';
import { countOf, portOf, rangeOf, secondsOf } from './option-values.ts';

/** The commands for environments on this machine. */
export const localEnvironmentCommands = (): Command[] => [initCommand(), devCommand(), validateCommand(), serveCommand(), pushCommand()];

function initCommand(): Command {
  const command = new Command('init')
    .description('create a new environment: a folder with a small game, its tests and its README')
    .argument('<name>', 'name of the environment and its folder: letters, digits, "_" and "-"')
    .option('--dir <folder>', 'where to create the folder', '.')
    .option('--python', 'in Python, on a server of the package openreward (default: in TypeScript)', false)
    .option('--openenv', "in Python, in the layout of OpenEnv's tools", false)
    .action(lazy(async () => (await import('../commands/env/init.ts')).init));
  return addExamples(addOutput(command), 'palestra env init guess', 'palestra env init guess --python --dir environments');
}

function devCommand(): Command {
  const command = new Command('dev')
    .description('serve an environment, reload it on save, and open its playground; starts a Palestra service if none runs')
    .argument('[path]', 'folder, or module of an environment', '.')
    .option('--name <owner/name>', 'name (default: that of openenv.yaml or the folder, in your namespace)')
    .option('--port <port>', 'port of the environment (default: that of openenv.yaml, else 8000, else any free port)', portOf)
    .option('--python <interpreter>', 'Python of a Python environment (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .option('--no-open', 'only print the link of the playground')
    .action(lazy(async () => (await import('../commands/env/dev-session.ts')).dev));
  return addExamples(addOutput(command), 'palestra env dev', 'palestra env dev guess --name acme/guess');
}

function validateCommand(): Command {
  const command = new Command('validate')
    .description('check an environment in a folder, on a running server, or registered with the service')
    .argument('[path]', 'folder, module or http(s) URL (default: current folder)')
    .option('--url <url>', 'base URL of a running ORS or OpenEnv server')
    .option('--environment <owner/name>', 'an environment that is registered with the service')
    .addOption(
      new Option(
        '--level <level>',
        'static: check files and routes only; semantic: also play tasks (default: static for OpenEnv, else semantic)',
      ).choices(['static', 'semantic']),
    )
    .option('--tasks <count>', 'tasks of each split that the checks play', countOf, 10)
    .option('--player-tasks <count>', 'tasks that each scripted player plays; 0: none', countOf, 100)
    .option('--split <name>', 'split that the scripted players play (default: the first of type test, else the first)')
    .option('--reward-range <low,high>', 'smallest and largest total reward of an episode on a server (default: 0,1)', rangeOf)
    .option('--setup-timeout <seconds>', 'how long a session may take until it has its prompt', secondsOf, 30)
    .option('--deadline <seconds>', 'how long the whole validation may take', secondsOf, 600)
    .option('--python <interpreter>', 'Python of a Python environment (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .option('--json', 'same as --output json', false)
    .option('--timeout <seconds>', 'how long each static check of a URL may take', secondsOf, 5)
    .option('--report [owner/name]', 'send the report to the page of this environment (default: that of --environment)')
    .option('--report-file <file>', 'write the report as JSON to this file')
    .action(lazy(async () => (await import('../commands/env/validate.ts')).validate));
  return addExamples(addOutput(command), 'palestra env validate guess', 'palestra env validate --url http://127.0.0.1:8000 -o json');
}

function serveCommand(): Command {
  const command = new Command('serve')
    .description('serve an environment until Ctrl-C: a module of the kit, a folder or an image')
    .argument('[path]', 'folder, module of an environment, or image such as registry/owner/name:tag', '.')
    .option('--port <port>', 'port (default: that of openenv.yaml, else 8000); 0 for any free port', portOf)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--python <interpreter>', 'Python of a Python environment (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .action(lazy(async () => (await import('../commands/env/serve.ts')).serve));
  return addExamples(
    addOutput(addContainerOptions(command)),
    'palestra env serve guess --port 9000',
    'palestra env serve ghcr.io/acme/guess:1.0 --memory 512m',
    'palestra env serve guess --port 0 -o jsonl # one line with the address and the environments',
  );
}

function pushCommand(): Command {
  const command = new Command('push')
    .description('register an environment (a folder, a Python library, a running server or an image) with the service')
    .argument('[path]', 'folder, module, library such as reasoning-gym:NAME, or image such as registry/owner/name:tag', '.')
    .option('--name <owner/name>', 'name (default: that of openenv.yaml, the folder or the image, in your namespace)')
    .option('--url <url>', 'a running ORS, OpenEnv or MCP server; the folder gives name and README')
    .option('--image <reference>', 'an image whose name is also that of a folder')
    .addOption(new Option('--registry-style <reference>', 'same as --image').hideHelp())
    .option('--port <port>', 'port to serve on (default: any free port)', portOf)
    .option('--host <address>', 'address to serve on, which the Palestra service must reach', '127.0.0.1')
    .option('--python <interpreter>', 'Python of a Python environment (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .option('--public', 'visible to every organisation of the service, not only to yours', false)
    .option('--no-report', 'send no report; by default a module of the kit is validated after it is registered')
    .option('--detach', 'keep serving in the background and return (default: serve until Ctrl-C)', false)
    .action(lazy(async () => (await import('../commands/env/push.ts')).push));
  return addExamples(
    addOutput(addLibraryOptions(addContainerOptions(command))),
    'palestra env push guess --detach',
    'palestra env push reasoning-gym:leg_counting --name acme/leg-counting --detach',
    'palestra env push --url http://127.0.0.1:8000 --name acme/guess',
    'palestra env push guess --detach -o json | jq .version',
  );
}
