import type { CreateDeployInput } from '@palestra/protocol';
import { assertArchive, type ChosenFile, packFiles } from './pack-folder.ts';

export const SOURCE_KINDS = ['folder', 'git', 'image', 'url'] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** What the reader uploads. */
export type ChosenFolder =
  | { kind: 'files'; name: string; files: readonly ChosenFile[]; bytes: number; left: number }
  | { kind: 'archive'; name: string; archive: File };

/** The texts of the form, of all kinds. */
export interface SourceForm {
  kind: SourceKind;
  folder: ChosenFolder | null;
  url: string;
  ref: string;
  subdirectory: string;
  image: string;
  port: string;
  /** One per line. */
  urls: string;
}

export function sourceOf({ kind, url, ref, subdirectory, image, port, urls }: SourceForm): CreateDeployInput['source'] {
  if (kind === 'git') return { kind, url: url.trim(), ref: ref.trim() || null, subdirectory: subdirectory.trim() || null };
  if (kind === 'image') return { kind, image: image.trim(), port: port === '' ? null : Number(port) };
  return { kind: 'url', urls: urls.split(/\s+/).filter(Boolean) };
}

/** A name for the environment, as `palestra env deploy` chooses it: of the folder, the repository or the image. Empty without one. */
export function nameOfSource({ kind, folder, url, subdirectory, image }: SourceForm): string {
  const last = (path: string) => path.replace(/\/+$/, '').split('/').at(-1)!;
  const named = {
    folder: folder?.name.replace(/\.(?:tar\.gz|tgz)$/, '') ?? '',
    git: last(subdirectory.trim() || url.trim()).replace(/\.git$/, ''),
    image: last(image.trim()).split(/[:@]/)[0]!,
    url: '',
  }[kind];
  return named
    .replaceAll(/[^\w-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);
}

/** The archive of what was chosen. Throws when it is too large. */
export async function archiveOf({ folder }: SourceForm, signal: AbortSignal): Promise<Blob> {
  if (folder === null) throw new Error('Choose a folder first.');
  if (folder.kind === 'files') return packFiles(folder.files, signal);
  assertArchive(folder.archive);
  return folder.archive;
}
