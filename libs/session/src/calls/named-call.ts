import { createHash } from 'node:crypto';
import { PalestraError } from '@palestra/protocol';

/** Long enough to be random: a name that two clients of a session hit upon would make one call of two. */
const NAME = /^[\w.:-]{16,128}$/;

/** What clients are told who name a call otherwise. */
const RULE =
  'The id of a call is made up by its client: 16 to 128 letters, digits and any of ._:-, a UUID for example, never used for another call.';

/** The task id of the call that a client has named so in this session. Throws `invalid_request` for what is no such name. */
export function namedTaskId(sid: string, name: string): string {
  if (!NAME.test(name)) throw new PalestraError('invalid_request', { detail: RULE });
  return createHash('sha256')
    .update(JSON.stringify([sid, name]))
    .digest('hex')
    .slice(0, 32);
}
