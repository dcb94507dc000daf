import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type EnvironmentServer, PalestraApiError, type PalestraClient } from '@palestra/client';
import type { OpenEnvManifest } from '../../openenv-manifest.ts';
import { UsageError } from '../../settings.ts';

/** What a folder says of its environment. */
export interface Card {
  description: string;
  readme: string | null;
}

export interface Registered {
  name: string;
  version: number;
  /** false: the newest version was on this server already. */
  changed: boolean;
}

const NAME = /^[A-Za-z0-9_-]{3,64}$/;

/** `owner/name` or a bare name in the caller's own namespace. Throws `UsageError`. */
export function placeOf(target: string): { namespace?: string; name: string } {
  const [first, second, ...rest] = target.split('/');
  const place = second === undefined ? { name: first! } : { namespace: first!, name: second };
  if (rest.length > 0 || place.namespace === '' || !NAME.test(place.name))
    throw new UsageError(`not an environment name: ${target}; expected owner/name, the name of 3 to 64 letters, digits, "-" or "_"`);
  return place;
}

/** A name that the registry takes, of one that people gave to a folder or an image. */
export const nameFrom = (text: string): string =>
  text
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);

export async function cardOf(folder: string, manifest: OpenEnvManifest | null): Promise<Card> {
  const text = await readFile(path.join(folder, 'README.md'), 'utf8').catch(() => null);
  const readme = text === null ? null : withoutFrontMatter(text);
  const said = manifest?.description ?? firstSentence(readme ?? '');
  const version = manifest?.version == null ? '' : `version ${manifest.version}`;
  return { description: [said, version].filter(Boolean).join(' · '), readme };
}

/** Spaces keep their settings there, between lines of dashes. */
const withoutFrontMatter = (text: string): string => text.replace(/^\uFEFF?---\r?\n.*?\r?\n---\r?\n/s, '').trimStart();

/** The first paragraph that is no heading, image, list or code. */
function firstSentence(markdown: string): string {
  const paragraph = markdown.split(/\r?\n\s*\r?\n/).find((part) => /^[A-Za-z*_`[]/.test(part.trim()) && !part.trim().startsWith('```'));
  return (paragraph ?? '').trim().replaceAll(/\s+/g, ' ').slice(0, 300);
}

/** Creates the environment, or gives it a new version when it is there and was on another server. */
export async function register(
  client: PalestraClient,
  place: { namespace?: string; name: string },
  server: EnvironmentServer,
  card: Card | null,
  isPrivate: boolean,
): Promise<Registered> {
  const namespace = place.namespace ?? (await client.me()).org.name;
  const environment = `${namespace}/${place.name}`;
  const known = await client.environments.get(environment).catch((error: unknown) => {
    if (error instanceof PalestraApiError && error.status === 404) return null;
    throw error;
  });
  if (known === null) {
    const added = await client.environments.add({ ...place, namespace: place.namespace, server, isPrivate, ...card });
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
