import { PassThrough, type Readable } from 'node:stream';
import { HostingError } from '../../provider/hosting-error.ts';
import type { ContainerTarget } from './container-run.ts';
import { exec } from './exec.ts';

/** Archives go through tar in the sandbox, which its image needs. */

const ARCHIVE_MS = 600_000;
const SMALL_BYTES = 1_024;

/** Unpacks a tar archive in a folder that exists, as the user of the image. */
export async function unpack(target: ContainerTarget, folder: string, archive: Readable | Buffer, signal: AbortSignal): Promise<void> {
  const request = { command: ['tar', '-xf', '-', '-C', folder], stdin: archive, timeoutMs: ARCHIVE_MS, maxBytes: SMALL_BYTES };
  // It may fail before anybody reads it.
  const failed = new AbortController();
  if (!Buffer.isBuffer(archive)) archive.on('error', (error) => failed.abort(error));
  try {
    const { exitCode, output } = await exec(target, request, AbortSignal.any([signal, failed.signal]));
    if (exitCode === 0) return;
    const why = output.toString().trim() || `status ${exitCode}`;
    const advice = `Its image needs tar, and a user who may write in ${folder}.`;
    throw new HostingError('instance_failed', `The files cannot be unpacked in the sandbox: ${why}. ${advice}`);
  } finally {
    if (!Buffer.isBuffer(archive)) archive.destroy();
  }
}

/** A file or folder that exists as a tar archive, whose first name is that of `path`. Who no longer reads it ends it. */
export function pack(target: ContainerTarget, path: string, signal: AbortSignal): Readable {
  const archive = new PassThrough();
  const left = new AbortController();
  let resume = () => {};
  archive.on('close', () => left.abort()).on('drain', () => resume());
  const onOutput = (bytes: Buffer) => (archive.write(bytes) ? undefined : new Promise<void>((resolve) => (resume = resolve)));
  const command = ['/bin/sh', '-c', 'd=${1%/*}; exec tar -cf - -C "${d:-/}" -- "${1##*/}"', 'sh', path];
  const request = { command, timeoutMs: ARCHIVE_MS, maxBytes: 0, stdoutOnly: true, onOutput };
  exec(target, request, AbortSignal.any([signal, left.signal])).then(
    ({ exitCode }) => {
      if (exitCode === 0) archive.end();
      else archive.destroy(new HostingError('instance_failed', `${path} cannot be packed in the sandbox (status ${exitCode}).`));
    },
    (error: Error) => archive.destroy(error),
  );
  return archive;
}
