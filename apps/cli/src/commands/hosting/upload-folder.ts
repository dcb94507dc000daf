import type { PalestraClient, UploadDeployOptions } from '@palestra/client';
import { HostingError, packFolder } from '@palestra/hosting';
import type { DeployView } from '@palestra/protocol';
import { DeployError } from './deploy-error.ts';

/** Packs a folder while it is uploaded. A folder that cannot be packed is a `DeployError`. */
export async function uploadFolder(
  client: PalestraClient,
  environment: string,
  folder: string,
  options: UploadDeployOptions & { signal: AbortSignal },
): Promise<DeployView> {
  try {
    const { archive, files, bytes } = await packFolder(folder, undefined, options.signal);
    process.stderr.write(`Uploading ${files} ${files === 1 ? 'file' : 'files'}, ${sizeOf(bytes)}, of ${folder}\n`);
    return await client.hosting.deployFolder(environment, archive, options);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof HostingError ? error.cause : error;
    if (cause instanceof HostingError) throw new DeployError(cause.code, cause.message);
    throw error;
  }
}

const sizeOf = (bytes: number): string => (bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`);
