import { statSync } from 'node:fs';
import path from 'node:path';
import type { CreateDeployInput } from '@palestra/protocol';
import { nameOfImage } from '../../containers/image.ts';
import { UsageError } from '../../settings.ts';
import { nameOfFolder, validName } from './named-environment.ts';

/** The options of `deploy` that say what is deployed. */
export interface SourceFlags {
  git?: string;
  ref?: string;
  subdirectory?: string;
  image?: string;
  port?: number;
  url?: string[];
  dockerfile?: string;
}

/** A folder to upload, or what the service reads itself. */
export type Source = { kind: 'folder'; folder: string } | CreateDeployInput['source'];

/** Throws `UsageError` for a missing folder and for options that exclude each other. */
export function sourceOf(folder: string | undefined, flags: SourceFlags): Source {
  const { git, ref, subdirectory, image, port, url, dockerfile } = flags;
  const named = { 'a folder': folder, '--git': git, '--image': image, '--url': url };
  const given = Object.entries(named).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (given.length > 1) throw new UsageError(`Pass one of ${given.join(' and ')}, not both.`);
  if (git === undefined && (ref ?? subdirectory) !== undefined) throw new UsageError('--ref and --subdirectory need --git.');
  if (image === undefined && port !== undefined) throw new UsageError('--port needs --image.');
  if ((image ?? url) !== undefined && dockerfile !== undefined) throw new UsageError('--dockerfile needs a folder or --git.');
  if (git !== undefined) return { kind: 'git', url: git, ref, subdirectory };
  if (image !== undefined) return { kind: 'image', image, port };
  if (url !== undefined) return { kind: 'url', urls: url };
  const chosen = folder ?? '.';
  if (!statSync(chosen, { throwIfNoEntry: false })?.isDirectory()) throw new UsageError(`${chosen}: no such folder.`);
  return { kind: 'folder', folder: path.resolve(chosen) };
}

/** The name of an environment that the user does not name. Throws `UsageError` where the source has none. */
export function nameOfSource(source: Source): Promise<string> | string {
  switch (source.kind) {
    case 'folder':
      return nameOfFolder(source.folder);
    case 'git':
      return validName(path.posix.basename(source.subdirectory ?? source.url).replace(/\.git$/, ''), source.url);
    case 'image':
      return validName(nameOfImage(source.image), source.image);
    case 'url':
      throw new UsageError('The environment has no name. Pass --name owner/name.');
  }
}
