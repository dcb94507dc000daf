import type { PalestraClient } from '@palestra/client';
import { printable } from './output.ts';

/** Says so if sessions get another version than the one that was just added: an environment with channels gives it to none. */
export async function noteUnpromoted(client: PalestraClient, environment: string, version: number): Promise<void> {
  const { version: served } = await client.environments.get(environment);
  if (served === version) return;
  const name = printable(environment);
  process.stderr.write(`Sessions on ${name} get version ${served}. To give them this one: palestra env promote ${name}@${version}\n`);
}
