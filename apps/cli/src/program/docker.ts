import { Command, Option } from 'commander';
import { addExamples, collect, lazy } from './define.ts';

const actions = () => import('../commands/docker.ts');

/**
 * The Docker commands that OpenEnv clients use, for environments of a Palestra server. A container is a process that forwards a port of
 * localhost to one session (docs/skyrl-openenv.md). `integrations/skyrl-openenv/bin/docker` calls it.
 */
export function dockerCommand(): Command {
  const docker = new Command('docker')
    .description('stand in for Docker, for OpenEnv clients that start environments by image')
    .enablePositionalOptions();
  const version = docker
    .command('version')
    .description('print a version, which clients read before they start a container')
    .action(lazy(async () => (await actions()).version));
  const run = docker
    .command('run')
    .description('start a session of the environment of an image')
    .argument('<image>', 'name of an environment; "-" and "_" are equivalent; see PALESTRA_DOCKER_IMAGES')
    .argument('[command...]', 'ignored')
    .option('-d, --detach', 'run in the background and print the id')
    .option('--name <name>', 'name of the container')
    .option('-p, --publish <port>', 'port of localhost, such as 8001:8000', collect)
    .option('-e, --env <variable>', 'ignored: environments run on the server', collect)
    .addOption(new Option('--rm', 'always on').default(true))
    .passThroughOptions()
    .action(lazy(async () => (await actions()).runContainer));
  const stop = docker
    .command('stop')
    .description('end containers and their sessions')
    .argument('<container...>', 'ids or names')
    .option('-t, --time <seconds>', 'ignored')
    .action(lazy(async () => (await actions()).stopContainers));
  const rm = docker
    .command('rm')
    .description('end containers and their sessions; succeeds for unknown containers, too')
    .argument('<container...>', 'ids or names')
    .option('-f, --force', 'always on')
    .option('-v, --volumes', 'ignored')
    .action(lazy(async () => (await actions()).removeContainers));
  const pull = docker
    .command('pull')
    .description('do nothing, because environments are on the server')
    .argument('<image>', 'name of an environment')
    .action(lazy(async () => (await actions()).pull));
  const tag = docker
    .command('tag')
    .description('do nothing, because names need no tag')
    .argument('<source>', 'image')
    .argument('<target>', 'image')
    .action(() => {});
  docker
    .command('forward', { hidden: true })
    .argument('<options>')
    .action(lazy(async () => (await actions()).forwardAsChild));
  addExamples(version, 'palestra docker version');
  addExamples(run, 'palestra docker run -d --name echo -p 8001:8000 echo-env:latest');
  addExamples(stop, 'palestra docker stop echo');
  addExamples(rm, 'palestra docker rm -f echo');
  addExamples(pull, 'palestra docker pull echo-env:latest');
  addExamples(tag, 'palestra docker tag echo-env:latest echo-env:mine');
  return addExamples(docker, 'palestra docker run -d --name echo -p 8001:8000 echo-env:latest', 'palestra docker stop echo');
}
