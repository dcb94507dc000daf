import { newUuid } from '@palestra/kit';
import tar from 'tar-stream';
import { HostingError } from '../../provider/hosting-error.ts';
import { type Engine, isStatus } from '../engine/engine.ts';
import { LABEL, names } from '../engine/names.ts';
import { createContainer, removeContainer } from './containers.ts';

/** Where an instance finds its secrets, also in the variable PALESTRA_SECRETS_DIR. */
export const SECRETS_FOLDER = '/run/secrets/palestra';
const NAME = /^[\w.-]{1,255}$/;

/**
 * Puts the secrets as files into a volume. The only way that works with engines on other machines and with a root file system that cannot be
 * written: an archive that is unpacked through a container which never runs.
 */
export async function fillSecrets(
  engine: Engine,
  options: { id: string; image: string; labels: Record<string, string>; secrets: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<void> {
  const { id, labels } = options;
  const volume = names.secrets(id);
  await engine.request({ method: 'POST', path: '/volumes/create', body: { Name: volume, Labels: labels } }, signal);
  // Another process may do the same at the same time.
  const container = names.files(id, newUuid());
  const body = {
    Image: options.image,
    Entrypoint: ['/never-runs'],
    Labels: { ...labels, [LABEL.role]: 'files' },
    HostConfig: { NetworkMode: 'none', Binds: [`${volume}:${SECRETS_FOLDER}`] },
  };
  await createContainer(engine, container, body, signal);
  try {
    const archive = await archiveOf(options.secrets);
    const path = `/containers/${container}/archive`;
    await engine.request({ method: 'PUT', path, query: { path: SECRETS_FOLDER }, archive }, signal);
  } finally {
    await removeContainer(engine, container, signal);
  }
}

/** Readable for every user of the container, which has one. */
function archiveOf(secrets: Readonly<Record<string, string>>): Promise<Buffer> {
  const pack = tar.pack();
  for (const [name, value] of Object.entries(secrets)) {
    if (!NAME.test(name) || /^\.+$/.test(name)) throw new HostingError('instance_failed', `"${name}" cannot be the name of a secret.`);
    pack.entry({ name, mode: 0o444 }, value);
  }
  pack.finalize();
  return collect(pack);
}

async function collect(pack: AsyncIterable<unknown>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of pack) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export async function removeSecrets(engine: Engine, id: string, signal: AbortSignal): Promise<void> {
  try {
    await engine.request({ method: 'DELETE', path: `/volumes/${names.secrets(id)}`, query: { force: true } }, signal);
  } catch (error) {
    if (!isStatus(error, 404)) throw error;
  }
}
