// `npm run pin-images`: adds the current digest to each image tag in Dockerfile and docker-compose.yml (`name:tag@sha256:...`), read from
// the registry of the image. `npm run pin-images -- --check` writes nothing and fails for an image without a digest, for releases.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
/** Registry of images without one. PALESTRA_IMAGE_REGISTRY: a mirror. */
const registry = process.env.PALESTRA_IMAGE_REGISTRY || 'https://registry-1.docker.io';
const DEADLINE_MS = 30_000;
/** Prefers multi-platform lists, because the digest must be valid on each platform. */
const MANIFESTS = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
/** Patterns of image names in each file. */
const FILES = {
  Dockerfile: /(?<=^ARG NODE_IMAGE=)(?<image>[^\s@]+)(?<digest>@\S+)?/gm,
  'docker-compose.yml': /(?<=^ {4}image: )(?<image>[^\s@]+:[^\s@]+)(?<digest>@\S+)?/gm,
};

async function request(url, headers) {
  return fetch(url, { headers: { accept: MANIFESTS, ...headers }, signal: AbortSignal.timeout(DEADLINE_MS) });
}

/** The digest of `name:tag`, with an anonymous token if the registry requires one (Docker Registry HTTP API V2). */
async function digestOf(image) {
  const [name, tag] = image.split(':');
  const url = `${registry}/v2/${name.includes('/') ? name : `library/${name}`}/manifests/${tag}`;
  let answer = await request(url, {});
  if (answer.status === 401) {
    const challenge = answer.headers.get('www-authenticate') ?? '';
    const [realm, service, scope] = ['realm', 'service', 'scope'].map((key) => new RegExp(`${key}="([^"]+)"`).exec(challenge)?.[1]);
    const { token } = await (await request(`${realm}?${new URLSearchParams({ service, scope })}`, {})).json();
    answer = await request(url, { authorization: `Bearer ${token}` });
  }
  const digest = answer.headers.get('docker-content-digest');
  if (!answer.ok || !/^sha256:[0-9a-f]{64}$/.test(digest ?? ''))
    throw new Error(`${image}: the registry answers ${answer.status} and no digest`);
  return digest;
}

const check = process.argv.includes('--check');
const known = new Map();
const missing = [];
for (const [file, pattern] of Object.entries(FILES)) {
  const before = readFileSync(path.join(root, file), 'utf8');
  const images = [...before.matchAll(pattern)].map(({ groups }) => groups);
  if (images.length === 0) throw new Error(`${file} names no image`);
  missing.push(...images.filter(({ digest }) => digest === undefined).map(({ image }) => `${file}: ${image}`));
  if (check) continue;
  for (const { image } of images) if (!known.has(image)) known.set(image, await digestOf(image));
  writeFileSync(
    path.join(root, file),
    before.replaceAll(pattern, (...match) => `${match.at(-1).image}@${known.get(match.at(-1).image)}`),
  );
}
for (const [image, digest] of known) console.log(`${image}@${digest}`);
if (check && missing.length > 0) {
  console.error(`Without a digest:\n${missing.join('\n')}\nRun \`npm run pin-images\` where the registry can be reached.`);
  process.exitCode = 1;
}
