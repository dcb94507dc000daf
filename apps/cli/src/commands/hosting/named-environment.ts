import path from 'node:path';
import type { PalestraClient } from '@palestra/client';
import { nameFrom, readManifest } from '@palestra/hosting';
import { environmentName } from '../../environment-name.ts';
import { UsageError } from '../../settings.ts';
import { parseName } from '../env/register.ts';

/** An environment of the server, and the number of one of its versions or null. */
export interface NamedEnvironment {
  environment: string;
  version: number | null;
}

/**
 * The environment that a user names by `owner/name` or by its name in the caller's namespace, with `@3` for a version. Without a name: that of
 * the current folder. Throws `UsageError`.
 */
export async function namedEnvironment(client: PalestraClient, text = ''): Promise<NamedEnvironment> {
  const [name, number, ...rest] = text.split('@');
  if (rest.length > 0 || (number !== undefined && !/^[1-9]\d{0,8}$/.test(number)))
    throw new UsageError(`Invalid version "${text}". Expected owner/name@3 or @3.`);
  const target = name || (await nameOfFolder('.'));
  return { environment: await environmentName(client, target), version: number === undefined ? null : Number(number) };
}

/** Like `namedEnvironment`, of an environment without a version. */
export async function environmentOnly(client: PalestraClient, text?: string): Promise<string> {
  const { environment, version } = await namedEnvironment(client, text);
  if (version !== null) throw new UsageError(`This command is about all versions. Leave "@${version}" out.`);
  return environment;
}

/** A version that a user names by `owner/name@3`, or by its number in the environment of the current folder. Throws `UsageError`. */
export async function namedVersion(client: PalestraClient, text: string): Promise<{ environment: string; version: number }> {
  const { environment, version } = await namedEnvironment(client, /^\d+$/.test(text) ? `@${text}` : text);
  if (version === null) throw new UsageError(`"${text}" names no version. Expected a number such as 3, or owner/name@3.`);
  return { environment, version };
}

/** The name of the environment in a folder: that of its manifest, else of the folder. Throws `UsageError` if no environment can have it. */
export async function nameOfFolder(folder: string): Promise<string> {
  const manifest = await readManifest(folder);
  return validName(manifest?.name ?? path.basename(path.resolve(folder)), folder);
}

/** A valid name from the name of a folder, a repository or an image. */
export function validName(text: string, where: string): string {
  const name = nameFrom(text);
  try {
    parseName(name);
  } catch {
    throw new UsageError(
      `${where}: "${text}" cannot be the name of an environment, which has 3 to 64 letters, digits, "-" or "_". Pass a name such as owner/name; ` +
        'for deploy, as --name owner/name.',
    );
  }
  return name;
}
