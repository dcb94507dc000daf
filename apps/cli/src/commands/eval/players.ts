import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { type Environment, type Player, randomPlayer, solver } from '@palestra/environment-kit';
import type { TaskSpec } from '@palestra/protocol';
import { UsageError } from '../../server-settings.ts';

/** Owner of the environments of the package @palestra/environments. */
const BUNDLED_OWNER = 'palestra';

/** The player of a task. */
export type PlayerOf = (task: () => Promise<TaskSpec>) => Promise<Player>;

/**
 * A player by the name that the page of the environment shows: one that the definition has, its solutions as `solve`, or `random`. `module`: the
 * file with the definition of an environment that is not bundled. Throws `UsageError` for another name.
 */
export async function findPlayer(name: string, environment: string, module: string | undefined): Promise<PlayerOf> {
  const definition = await definitionOf(environment, module);
  const players = definition?.players ?? [];
  const player = players.find((one) => one.name === name) ?? (name === randomPlayer.name ? randomPlayer : undefined);
  if (player !== undefined) return async () => player;
  if (definition?.solve && name === 'solve') return async (task) => solver(definition, await task());
  const names = new Set([randomPlayer.name, ...players.map((one) => one.name), ...(definition?.solve ? ['solve'] : [])]);
  const hint = definition === undefined ? ' Pass --module with the file of the environment for its own players.' : '';
  throw new UsageError(`No player "${name}" of ${environment}. Available: ${[...names].join(', ')}.${hint}`);
}

async function definitionOf(environment: string, module: string | undefined): Promise<Environment | undefined> {
  const [owner, name] = environment.split('/');
  if (module !== undefined) {
    const { loadEnvironments } = await import('@palestra/hosting');
    const found = await loadEnvironments(module);
    return found.find((one) => one.name === name) ?? (found.length === 1 ? found[0] : undefined);
  }
  if (owner !== BUNDLED_OWNER) return undefined;
  // An application imports no other one: it finds the installed package, as the API does.
  const file = createRequire(import.meta.url).resolve('@palestra/environments/catalogue');
  const { bundledEnvironments } = (await import(pathToFileURL(file).href)) as { bundledEnvironments: Environment[] };
  return bundledEnvironments.find((one) => one.name === name);
}
