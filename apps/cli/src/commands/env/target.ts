import { type LibraryFlags, type Target, TargetError, targetAt as findTarget } from '@palestra/hosting';
import { UsageError } from '../../settings.ts';

/** Finds the environment at a path. Throws `UsageError` if there is none, `ManifestError` if its manifest is invalid. */
export async function targetAt(argument: string, flags: LibraryFlags = {}): Promise<Target> {
  return findTarget(argument, flags).catch((error: unknown) => {
    throw error instanceof TargetError ? new UsageError(error.message) : error;
  });
}

const FLAGS = ['splitSize', 'seed', 'set', 'data', 'workers', 'maxSessions', 'deadline'] as const;

/** The flags among the options of a command that were passed. */
export const libraryFlags = (options: LibraryFlags): LibraryFlags =>
  Object.fromEntries(FLAGS.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])));
