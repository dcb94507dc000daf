import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { FIRST_ORG } from './account.service.ts';

/** What shows everybody's environments, or the machine, is for those who run the service. Throws `forbidden` for others. */
export function assertOperator(caller: Caller): void {
  if (caller.orgName !== FIRST_ORG || caller.anonymous)
    throw new PalestraError('forbidden', { detail: `This is for keys of the organisation "${FIRST_ORG}", which runs this server.` });
}
