import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { HostingError } from '../../provider/hosting-error.ts';
import type { BuildPlan, BuildRequest } from '../../provider/provider.port.ts';
import { palestraPackage } from '../../target/python-library.ts';
import { type ContextFolder, exclusion, text } from './build-context.ts';
import {
  assertNoHostAccess,
  GENERATED_PORT,
  generateDockerfile,
  KIT,
  needsKit,
  needsPythonPackage,
  PYTHON_PACKAGE,
  SOURCE,
  withVariables,
} from './dockerfiles.ts';
import { kitFolders } from './kit-packages.ts';
import { pythonPackageFolder, wheelName } from './python-package.ts';

/** Harbor tasks are several images, which `HarborBuilder` builds. */
export type FolderSource = BuildRequest['source'] & { kind: 'folder'; plan: Exclude<BuildPlan, { kind: 'harbor' }> };

interface FolderOptions {
  images: { python: string; node: string };
  /** Path of the Python package `palestra`; null: the source beside this service. */
  pythonPackage: string | null;
}

/** The Dockerfile of a folder: the author's own or a generated one. Throws `source_invalid`. */
export async function dockerfileOf({ folder, plan }: FolderSource, options: FolderOptions): Promise<string> {
  if (plan.kind !== 'dockerfile') {
    const pythonPackage = needsPythonPackage(plan) ? wheelName(palestraPackage(options.pythonPackage)) : '';
    return generateDockerfile(plan, { images: options.images, files: new Set(await readdir(folder)), pythonPackage });
  }
  const dockerfile = await text(path.join(folder, plan.dockerfile));
  if (dockerfile === null) throw new HostingError('source_invalid', `There is no ${plan.dockerfile} in the folder.`);
  assertNoHostAccess(dockerfile);
  return withVariables(dockerfile, plan.variables);
}

/** The folders of the context of that Dockerfile: the author's, then those that this service adds. */
export async function contextFolders(
  { folder, plan }: FolderSource,
  options: Pick<FolderOptions, 'pythonPackage'>,
): Promise<ContextFolder[]> {
  const isAuthors = plan.kind === 'dockerfile';
  const isExcluded = await exclusion(folder, isAuthors ? `${plan.dockerfile}.dockerignore` : null);
  const source = { folder, at: isAuthors ? '' : SOURCE, isExcluded };
  if (isAuthors) return [source];
  return [
    source,
    ...(needsKit(plan) ? kitFolders(KIT) : []),
    ...(needsPythonPackage(plan) ? [pythonPackageFolder(palestraPackage(options.pythonPackage), PYTHON_PACKAGE)] : []),
  ];
}

/** Null: what the image exposes. */
export const portOf = (plan: FolderSource['plan']): number | null => (plan.kind === 'dockerfile' ? plan.port : GENERATED_PORT);
