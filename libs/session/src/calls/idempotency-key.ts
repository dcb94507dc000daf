import { createHash } from 'node:crypto';
import { PalestraError } from '@palestra/protocol';

/** Long enough to be random: two clients of a session that chose the same key would share one call. */
const KEY = /^[\w.:-]{16,128}$/;

const RULE =
  'The client chooses the id of a call: 16 to 128 letters, digits and any of ._:-, for example a UUID, never used for another call.';

/** The task id of the call with this idempotency key in this session. Throws `invalid_request` for a malformed key. */
export function taskIdOfKey(sid: string, key: string): string {
  if (!KEY.test(key)) throw new PalestraError('invalid_request', { detail: RULE });
  return createHash('sha256')
    .update(JSON.stringify([sid, key]))
    .digest('hex')
    .slice(0, 32);
}
