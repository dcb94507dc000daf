import { canonicalArgsHash } from '@palestra/rollouts';

/** Arguments with more characters are not hashed when the call is made: their session is found by its other calls. */
const MAX_HASHED = 65_536;

/** The hash of a call's arguments that its match key contains; null = the call has no key. */
export const matchedArgs = (input: string): string | null => (input.length > MAX_HASHED ? null : canonicalArgsHash(input));

/**
 * The key that finds the calls of the ledger which equal an uploaded call, as SQL: organisation, environment (`owner/name`), tool and
 * hash of the arguments. It contains the organisation, so that calls of others never stand in the way. Null if one of them is null.
 */
export const matchKey = (orgId: string, environment: string, tool: string, argsHash: string): string =>
  `hashtextextended(${orgId} || ' ' || ${environment} || ' ' || ${tool} || ' ' || ${argsHash}, 0)`;
