import { HostingError } from '../../provider/hosting-error.ts';

/**
 * The full name of an image: Podman guesses the registry of a short one, Docker does not. `tag`: null for a name with a digest, which is part of
 * the repository; without a tag Docker would pull all.
 */
export function parseImageName(name: string): { repository: string; tag: string | null } {
  const [first = '', ...rest] = name.split('/');
  const hasRegistry = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  const full = hasRegistry ? name : rest.length > 0 ? `docker.io/${name}` : `docker.io/library/${name}`;
  if (full.includes('@')) return { repository: full, tag: null };
  const colon = full.lastIndexOf(':');
  if (colon <= full.lastIndexOf('/')) return { repository: full, tag: 'latest' };
  return { repository: full.slice(0, colon), tag: full.slice(colon + 1) };
}

/** `host/path:tag` or `host/path@digest`, as github.com/distribution/reference has it: paths are in lower case. */
const FULL_NAME = /^([A-Za-z0-9.:-]+)\/([a-z0-9]+(?:(?:\.|__?|-+|\/)[a-z0-9]+)*)(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/;
/** A domain, so no address and no name of this machine's network; its last label is no number in any notation. */
const REGISTRY = /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9](?::\d{1,5})?$/i;
const IMAGE_ID = /^(?:sha256:[0-9a-f]*|[0-9a-f]{64})$/i;
/** Images that this service built from the folders of tenants. */
const OURS = 'localhost/palestra/';
const MAX_CHARS = 300;

/**
 * The full name of an image that a tenant may use: one of a registry, or a local one that is not of another tenant. The engine gets this name,
 * never the text of a tenant: a short text may also be the beginning of the id of any image. Throws `source_invalid`.
 */
export function publicImageName(name: string): string {
  const refused = (why: string) =>
    new HostingError('source_invalid', `The image ${JSON.stringify(name.slice(0, 100))} cannot be used: ${why}`);
  if (IMAGE_ID.test(name)) throw refused('it is an id. Write its name.');
  const { repository, tag } = parseImageName(name);
  const full = tag === null ? repository : `${repository}:${tag}`;
  const [, registry = ''] = FULL_NAME.exec(full) ?? [];
  if (registry === '' || full.length > MAX_CHARS) throw refused('it is not a name like registry.example/team/name:tag.');
  if (full.startsWith(OURS)) throw refused('it belongs to an environment of this service.');
  if (registry !== 'localhost' && (!REGISTRY.test(registry) || /\.localhost(?::|$)/i.test(registry)))
    throw refused('its registry is not a public domain.');
  // The digest decides; Podman refuses both.
  return full.includes('@') ? full.replace(/:[^:/@]+@/, '@') : full;
}
