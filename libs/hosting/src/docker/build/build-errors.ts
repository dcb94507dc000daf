import { HostingError } from '../../provider/hosting-error.ts';
import type { BuildLimits } from '../../provider/provider.port.ts';
import type { BuildFailure } from './build-output.ts';

/** For the author of the Dockerfile. */
export function buildFailed({ message, step, line, isKilled }: BuildFailure, { memoryMb }: BuildLimits): HostingError {
  const where = step === null ? '' : ` in the step ${step}`;
  const why = isKilled ? `It was killed, probably because it ran out of memory: a build has ${memoryMb} MB. ${message}` : message;
  return new HostingError('build_failed', `The build failed${where}: ${why}`, { line: line ?? undefined });
}

export const tooMuchDisk = ({ maxBytes }: BuildLimits): HostingError =>
  new HostingError(
    'build_failed',
    `The build was stopped, because it took more than ${Math.floor(maxBytes / 2 ** 20)} MB of disk or left less than 1024 MB free. ` +
      'Write and install less in its steps. If other builds ran at the same time, deploy again.',
  );
