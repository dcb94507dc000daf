import type { Command } from 'commander';
import { UsageError } from '../server-settings.ts';
import { portOf, secondsOf } from './option-values.ts';

const START_SECONDS = 120;

/** The options of `serve` and `push` for images. */
export function addContainerOptions(command: Command): Command {
  const each = (value: string, earlier: string[]) => [...earlier, value];
  return command
    .option('--build', 'build the image of a folder from its server/Dockerfile and serve it', false)
    .option('--build-arg <name=value>', 'build argument for --build; repeatable', each, [])
    .option('--engine <command>', 'container engine (default: $PALESTRA_CONTAINER_ENGINE, else docker or podman)')
    .option('--container-port <port>', 'port of the server in the image (default: the exposed port, else 8000)', portOf)
    .option('--env <name=value>', 'variable of the container; NAME alone passes the current value; repeatable', variables, [])
    .option('--memory <size>', 'memory limit of the container, such as 512m or 2g')
    .option('--cpus <number>', 'CPU limit of the container, such as 1.5')
    .option('--start-timeout <seconds>', 'how long to wait for the container to respond', secondsOf, START_SECONDS);
}

/** Collects `NAME=value`, or `NAME` of a variable that is set. Throws `UsageError`. */
export function variables(text: string, earlier: string[]): string[] {
  const [name] = text.split('=', 1);
  if (!name) throw new UsageError(`Invalid --env "${text}". Expected --env NAME=value.`);
  if (name === text && process.env[name] === undefined)
    throw new UsageError(`--env ${name}: the variable is not set. Set it or pass --env ${name}=value.`);
  return [...earlier, text];
}
