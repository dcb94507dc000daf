import type { AuthRequest } from '../accounts/authenticator.ts';
import type { Caller } from '@palestra/session';

/** The caller of a request; null without a key. Throws `unauthorized` or `key_revoked` for a wrong one, `scope_missing` for a narrow one. */
export type Authenticate = (request: AuthRequest) => Promise<Caller | null>;
