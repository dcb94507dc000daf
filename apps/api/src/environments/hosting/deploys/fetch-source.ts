import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { cloneSource, digestOf, SOURCE_LIMITS, unpackSource } from '@palestra/hosting';
import type { OutboundPolicy } from '@palestra/outbound';
import { gitCredentialsIn } from '../git/git-credentials.ts';
import type { DeploySources } from './deploy-sources.ts';
import type { DeployRow } from './deploy.sql.ts';

/** Of a clone. */
const CLONE_S = 300;

export interface FetchContext {
  sources: DeploySources;
  outbound: OutboundPolicy;
  /** Of the environment, with the credentials of its repository. */
  secrets: Record<string, string>;
  note(text: string): void;
}

/** The digest of a source names everything that decides about its build. */
export interface FetchedSource {
  digest: string;
  commit: string | null;
}

/** Writes the files of an uploaded or cloned source into `folder`, which is emptied first. Throws `source_invalid`. */
export async function fetchFolder(deploy: DeployRow, folder: string, context: FetchContext, signal: AbortSignal): Promise<FetchedSource> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const commit = await writeFiles(deploy, folder, context, signal);
  const files = await digestOf(folder, signal);
  const { dockerfile } = deploy.options;
  return { digest: dockerfile === undefined ? files : digestOfText(JSON.stringify([files, dockerfile])), commit };
}

/** Returns the commit, of a repository. */
async function writeFiles(deploy: DeployRow, folder: string, context: FetchContext, signal: AbortSignal): Promise<string | null> {
  const { source, source_key: key } = deploy;
  if (source.kind !== 'git') {
    const { body } = await context.sources.open(key!, signal);
    context.note('Unpacking the uploaded folder.');
    await unpackSource(body as Readable, folder, SOURCE_LIMITS, signal);
    return null;
  }
  const { url, ref = null, subdirectory = null } = source;
  context.note(`Cloning ${url}${ref === null ? '' : ` at ${ref}`}${subdirectory === null ? '' : `, folder ${subdirectory}`}.`);
  const credentials = gitCredentialsIn(context.secrets, url);
  const resolveHost = (host: string, port: number) => context.outbound.addresses(host, port);
  const options = { ...SOURCE_LIMITS, seconds: CLONE_S, resolveHost };
  const { commit, notes } = await cloneSource({ url, ref, subdirectory, credentials }, folder, options, signal);
  context.note(`Commit ${commit}.`);
  for (const note of notes) context.note(note);
  return commit;
}

export const digestOfText = (text: string): string => `sha256:${createHash('sha256').update(text).digest('hex')}`;
