import { type EnvironmentServer, PalestraApiError, type PalestraClient } from '@palestra/client';
import type { Card } from '@palestra/hosting';
import { UsageError } from '../../settings.ts';

export interface Registered {
  name: string;
  version: number;
  /** False if the newest version already uses this server. */
  changed: boolean;
}

const NAME = /^[A-Za-z0-9_-]{3,64}$/;

/** Parses `owner/name`, or a name in the caller's namespace. Throws `UsageError`. */
export function parseName(target: string): { namespace?: string; name: string } {
  const [first, second, ...rest] = target.split('/');
  const parsed = second === undefined ? { name: first! } : { namespace: first!, name: second };
  if (rest.length > 0 || parsed.namespace === '' || !NAME.test(parsed.name))
    throw new UsageError(`Invalid environment name "${target}". Expected owner/name, with a name of 3 to 64 letters, digits, "-" or "_".`);
  return parsed;
}

/** Creates the environment, or adds a version to an existing one if it uses another server. */
export async function register(
  client: PalestraClient,
  name: { namespace?: string; name: string },
  server: EnvironmentServer,
  card: Card | null,
  isPrivate: boolean,
): Promise<Registered> {
  const namespace = name.namespace ?? (await client.me()).org.name;
  const environment = `${namespace}/${name.name}`;
  const known = await client.environments.get(environment).catch((error: unknown) => {
    if (error instanceof PalestraApiError && error.status === 404) return null;
    throw error;
  });
  if (known === null) {
    const added = await client.environments.add({ ...name, namespace: name.namespace, server, isPrivate, ...card });
    return { name: `${added.owner}/${added.name}`, version: added.version ?? 1, changed: true };
  }
  if (card !== null && (known.description !== card.description || known.readme_content !== card.readme))
    await client.environments.describe(environment, card);
  if (known.version !== null && isSame(known.source, server)) return { name: environment, version: known.version, changed: false };
  const { number } = await client.environments.addVersion(environment, server);
  return { name: environment, version: number, changed: true };
}

const isSame = (known: { kind: string; url?: string }, server: EnvironmentServer): boolean =>
  known.kind === server.kind && 'url' in server && known.url === server.url;
