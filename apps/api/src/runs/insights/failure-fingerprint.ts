import { createHash } from 'node:crypto';

const MAX_LENGTH = 200;
/** Only so much of an error is looked at, characters. */
const LOOKED_AT = 20_000;

/**
 * An error's text without what differs from one rollout to the next: the last line that says something (of a traceback the exception),
 * with ids, addresses, numbers, quoted texts and paths taken out.
 */
export function normaliseError(text: string): string {
  const lines = text.slice(-LOOKED_AT).split('\n');
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
