import { infiniteQueryOptions } from '@tanstack/react-query';
import type { AuditList } from '@palestra/protocol';
import { api, search } from './http.ts';

/** The audit log of the organisation. */

type Page = AuditList;
export type AuditEvent = Page['events'][number];

/** Empty fields select everything. `since` and `until` are days of `<input type="date">`; `action` can be a group, such as `key`. */
export interface AuditFilter {
  action: string;
  actor: string;
  since: string;
  until: string;
}
/**
 * When a day begins in the reader's time zone, or the one `later` days after it: a day with a change of the clocks has 23 or 25 hours. Empty
 * for no day, and for years of more than four digits, which the field takes.
 */
function startOf(day: string, later = 0): string {
  const at = new Date(`${day}T00:00`);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}
/** The last day is included. */
const queryOf = ({ action, actor, since, until }: AuditFilter) => ({
  action,
  actor: actor.trim(),
  since: startOf(since),
  until: startOf(until, 1),
});

export const auditQuery = (filter: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: ['audit', filter],
    queryFn: ({ pageParam, signal }) => api('GET /v1/audit', { query: { ...queryOf(filter), limit: 100, cursor: pageParam }, signal }),
    initialPageParam: '',
    getNextPageParam: (last: Page) => last.next_cursor ?? undefined,
    // The stream has no audit events, and the page may have been open for hours.
    staleTime: 0,
  });

/** The download of the same events as JSON lines. */
export const auditExportUrl = (filter: AuditFilter): string => `/v1/audit/export${search(queryOf(filter))}`;
