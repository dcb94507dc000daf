import { setTimeout } from 'node:timers/promises';
import { readBoundedText } from '@palestra/kit';
import { baseUrlOf, readSettings } from '../server-settings.ts';
import { DockerError } from './docker-error.ts';
import { environmentOf, isNamed, searchTextOf, type WantedEnvironment } from './image.ts';

/** How long the server may be away, for example while it restarts. Without its answer the trainer would lose a training step. */
const SERVER_MS = 60_000;
const REQUEST_MS = 10_000;
const RETRY_MS = 1_000;
const PAGE = 100;
const MAX_LISTED = 2_000;
/** A README is part of an environment, so a hundred of them can be long. */
const MAX_PAGE_BYTES = 16_000_000;

/**
 * Finds the environment of an image on the server: the only one with its name that the key may see. Throws `DockerError` without exactly one,
 * for a refused key, and when the server does not respond for a minute.
 */
export async function findEnvironment(image: string): Promise<string> {
  const wanted = environmentOf(image, process.env);
  const named = (await listEnvironments(wanted)).filter((one) => isNamed(wanted, one));
  // A name that is written out with its owner is one environment, whatever the others are called.
  const exact = named.find(({ owner, name }) => owner === wanted.owner && name === wanted.name);
  const found = (exact === undefined ? named : [exact]).map(({ owner, name }) => `${owner}/${name}`);
  if (found.length === 1) {
    await assertPlayable(found[0]!);
    return found[0]!;
  }
  const { url } = readSettings(process.env);
  if (found.length === 0) {
    const owned = wanted.owner === null ? '' : ` of ${wanted.owner}`;
    throw new DockerError(
      `Unable to find image '${image}': ${url} has no environment ${wanted.name}${owned} that this key may see. Register it with "palestra env push".`,
    );
  }
  const choice = JSON.stringify({ [wanted.name]: found[0] });
  throw new DockerError(`'${image}' is ambiguous: ${found.join(', ')}. Choose one, for example PALESTRA_DOCKER_IMAGES='${choice}'.`);
}

interface Listed {
  owner: string;
  name: string;
}

/** The environments whose name contains the longest word of the wanted name. Repeated while the server restarts. */
async function listEnvironments(wanted: WantedEnvironment): Promise<Listed[]> {
  const listed: Listed[] = [];
  const deadline = Date.now() + SERVER_MS;
  for (let offset = 0; offset < MAX_LISTED; offset += PAGE) {
    const query = new URLSearchParams({ search: searchTextOf(wanted), limit: String(PAGE), offset: String(offset) });
    if (wanted.owner !== null) query.set('owner', wanted.owner);
    const page = await getPage(query, deadline);
    listed.push(...page.environments);
    if (listed.length >= page.total || page.environments.length === 0) return listed;
  }
  throw new DockerError(`More than ${MAX_LISTED} environments contain "${searchTextOf(wanted)}". Set PALESTRA_OPENENV_OWNER.`);
}

/** The list is public: it does not tell whether the key is valid. */
async function assertPlayable(environment: string): Promise<void> {
  const answer = await get(`${baseUrlOf(environment)}/container/probe/health`, Date.now() + SERVER_MS);
  await answer.body?.cancel();
}

async function getPage(query: URLSearchParams, deadline: number): Promise<{ environments: Listed[]; total: number }> {
  const { url } = readSettings(process.env);
  const answer = await get(`${url.replace(/\/+$/, '')}/v1/environments?${query}`, deadline);
  return JSON.parse(await readBoundedText(answer.body, MAX_PAGE_BYTES)) as { environments: Listed[]; total: number };
}

/** A successful answer. Repeats the request until `deadline` while the server is away or busy. Throws `DockerError`. */
async function get(url: string, deadline: number): Promise<Response> {
  const { apiKey } = readSettings(process.env);
  const headers: Record<string, string> = apiKey ? { authorization: `Bearer ${apiKey}` } : {};
  const { origin } = new URL(url);
  for (;;) {
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(REQUEST_MS) }).catch((error: unknown) => error as Error);
    if (answer instanceof Response && answer.ok) return answer;
    if (answer instanceof Response) await answer.body?.cancel();
    const why = answer instanceof Response ? answer.status : answer.message;
    if (why === 401 || why === 403) throw new DockerError(`${origin} refused the API key (${why}). Check PALESTRA_API_KEY.`);
    const isTransient = typeof why === 'string' || why === 429 || why >= 502;
    if (!isTransient || Date.now() > deadline) throw new DockerError(`${origin} does not answer: ${why}.`);
    await setTimeout(RETRY_MS);
  }
}
