import { runChangeSchema } from '@palestra/protocol/schemas';
import { compileRegex } from '@palestra/query';

/** `runChangeSchema` of the wire that also rejects a `nameRegex` which RE2 does not compile; the check needs libs/query. */
export const checkedRunChangeSchema = runChangeSchema.check(({ value, issues }) => {
  const input = value.settings?.nameRegex;
  if (typeof input === 'string' && !isRegex(input))
    issues.push({ code: 'custom', message: 'expected a regex of RE2', path: ['settings', 'nameRegex'], input });
});

function isRegex(pattern: string): boolean {
  try {
    compileRegex({ kind: 'regex', pattern, ignoreCase: false, position: 0, length: pattern.length });
    return true;
  } catch {
    return false;
  }
}
