import { createHash } from 'node:crypto';
import { type JsonObject, PalestraError } from '@palestra/protocol';
import type { HostedEnvironment } from '@palestra/session';
import type { EnvironmentShape } from './environment-info.ts';

/**
 * OpenEnv's catalogue of one environment (`openenv/discovery/models.py` of 0.10, profile 0.1-draft): a declaration that is bound to one commit
 * of a public repository. `openenv discover --catalog FILE` reads it.
 */
const PROFILE = '0.1-draft';
const CARD_TYPE = 'application/vnd.openenv.environment-card+json';
const CONTEXT = 'https://agenticresourcediscovery.org/context/v1';
/** A card must not offer them to agents. */
const CONTROLS: ReadonlySet<string> = new Set(['reset', 'step', 'state', 'get_state']);
const TEXT_LIMIT = 8_192;
const TAGS = ['openenv', 'palestra'];
const DNS = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/i;
/** A folder of a commit on GitHub. */
const SOURCE = /^https:\/\/github\.com\/([\w.-]+)\/([\w.-]+?)(?:\.git)?\/tree\/([0-9a-f]{40}|[0-9a-f]{64})\/([\w. -]+(?:\/[\w. -]+)*)\/?$/;

interface Source {
  id: string;
  owner: string;
  uri: string;
  revision: string;
  path: string;
}

/** null for an address that names no folder of a commit. */
function readSource(url: string): Source | null {
  const match = SOURCE.exec(url);
  if (match === null) return null;
  const [, owner, repository, revision, path] = match as unknown as [string, string, string, string, string];
  if ([owner, repository, ...path.split('/')].some((part) => part === '.' || part === '..')) return null;
  return { id: `${owner}/${repository}`, owner, uri: `https://github.com/${owner}/${repository}.git`, revision, path };
}

/**
 * The catalogue with this environment. `url`: of the hosted environment, which the card has as metadata. `host`: of the service; its name is
 * the publisher. Throws `not_available` unless the environment's GitHub address names a folder of a commit, because OpenEnv has no card for
 * other environments.
 */
export function catalogOf({ toolSpecs, metadata }: EnvironmentShape, { owner, name, about }: HostedEnvironment, url: string): JsonObject {
  const source = readSource(about?.githubUrl ?? '');
  if (source === null) {
    const detail =
      'OpenEnv describes environments by a commit. Set the GitHub address to https://github.com/OWNER/NAME/tree/COMMIT/FOLDER.';
    throw new PalestraError('not_available', { detail });
  }
  const { hostname } = new URL(url);
  const publisher = DNS.test(hostname) ? hostname : 'palestra.localhost';
  const text = (value: unknown): string => String(value).toWellFormed().slice(0, TEXT_LIMIT);
  const description = text(about?.description.trim() || metadata['description'] || `${owner}/${name}`);
  const place = { provider: 'github', id: source.id, uri: source.uri, revision: source.revision };
  const tools = toolSpecs.map((tool) => tool.name).filter((tool) => tool.trim() !== '' && !CONTROLS.has(tool.toLowerCase()));
  const agentTools = { role: 'agent-tools', protocol: 'mcp', status: 'declared', source_revision: source.revision };
  const locator = sha256(`${source.uri}\n${source.path}`);
  const entry = {
    '@context': CONTEXT,
    identifier: `urn:air:${publisher}:${owner}:${locator}:${source.revision}`,
    displayName: name,
    type: CARD_TYPE,
    data: {
      schema_version: PROFILE,
      name,
      description,
      owner: { authority: 'github.com', id: source.owner },
      source: { ...place, path: source.path },
      artifact_availability: 'resolvable',
      artifacts: [{ kind: 'git', uri: source.uri, path: source.path, revision: source.revision }],
      license: 'unknown',
      interfaces: [{ role: 'orchestration', protocol: 'openenv' }, ...(tools.length > 0 ? [agentTools] : [])],
    },
    description,
    tags: TAGS,
    capabilities: [...new Set(tools.map(text))],
    representativeQueries: [],
    metadata: { hosted_at: url },
  };
  const root = source.path.includes('/') ? source.path.slice(0, source.path.lastIndexOf('/')) : '.';
  const snapshot = {
    schema_version: PROFILE,
    publisher,
    source: place,
    generator: { name: 'openenv-git-catalog', version: '1' },
    inventory: { root, paths: [source.path] },
    entries: [entry],
    issues: [],
    complete: true,
  };
  return { ...snapshot, digest: `sha256:${sha256(canonical(snapshot))}` } as JsonObject;
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** JSON with sorted keys and without spaces, as Python's `json.dumps` writes it for the digest. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`;
}
