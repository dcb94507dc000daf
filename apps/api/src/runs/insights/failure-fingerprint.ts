import { createHash } from 'node:crypto';

const MAX_LENGTH = 200;
/** Characters of an error that are read. */
const MAX_READ = 20_000;

/**
 * An error's text without the parts that differ between rollouts: the last line with a letter or digit (the exception of a traceback), with
 * placeholders for ids, addresses, numbers, quoted texts and paths.
 */
export function normaliseError(text: string): string {
  const lines = text.slice(-MAX_READ).split('\n');
  const line = lines.findLast((one) => /[\p{L}\p{N}]/u.test(one)) ?? '';
  return line
    .slice(0, 2_000)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<id>')
    .replaceAll(/0x[0-9a-z]+/gi, '<address>')
    .replaceAll(/"[^"]{0,200}"|'[^']{0,200}'|`[^`]{0,200}`/g, '<text>')
    .replaceAll(/(?:\/[\w.@+-]+){2,}\/?/g, '<path>')
    .replaceAll(/\b[0-9a-f]{12,64}\b/gi, '<id>')
    .replaceAll(/\d+(?:[.,]\d+)*/g, '<n>')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_LENGTH);
}

export interface FailureKey {
  error: string | null;
  /** The tool that was called last. */
  tool: string | null;
  stop: string;
}

export const fingerprint = ({ error, tool, stop }: FailureKey): string =>
  createHash('sha256')
    .update(JSON.stringify([error, tool, stop]))
    .digest('hex')
    .slice(0, 16);
