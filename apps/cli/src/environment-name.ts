import type { PalestraClient } from '@palestra/client';
import { UsageError } from './server-settings.ts';

/** `owner/name` of an environment that the user named so, or by its name alone in the caller's namespace. Throws `UsageError`. */
export async function environmentName(client: PalestraClient, target: string): Promise<string> {
  const [first, second, ...rest] = target.split('/');
  if (!first || second === '' || rest.length > 0)
    throw new UsageError(`Invalid environment name "${target}". Expected owner/name, or a name in your namespace.`);
  return second === undefined ? `${(await client.me()).org.name}/${first}` : target;
}
