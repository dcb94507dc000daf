/** What a path below `/nemo-gym` names. */
export interface NemoGymAddress {
  owner: string;
  /** Name of the environment, perhaps with a version: `whodunit@3`. */
  name: string;
  /** The run that records the episodes. */
  run: string | null;
  /** A route of a resources server, or the name of a tool; empty for the address itself. */
  operation: string;
}

/**
 * NeMo Gym knows servers as `http://{host}:{port}`. An address with a path therefore stands in `host`, and the port, which cannot be left out,
 * follows its last segment (docs/trainers/nemo-gym.md#address).
 */
const PORT = /:\d+$/;
/** NeMo Gym puts this and the id of a rollout before a route when it observes the rollout. */
const OBSERVED = 'ng-rollout';

/** Reads `{owner}/{name}[/runs/{run}][/ng-rollout/{id}]/{operation}`; null for any other path. `rest`: what follows the name, decoded. */
export function readAddress(owner: string, name: string, rest: string): NemoGymAddress | null {
  const segments = rest.split('/').filter((segment) => segment !== '');
  const run = segments[0] === 'runs' && segments.length > 1 ? segments[1]!.replace(PORT, '') : null;
  const route = run === null ? segments : segments.slice(2);
  const [operation = '', ...more] = route[0] === OBSERVED && route.length > 1 ? route.slice(2) : route;
  return more.length > 0 ? null : { owner, name: name.replace(PORT, ''), run, operation };
}
