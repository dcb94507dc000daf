import type { AuditAction } from '@palestra/protocol';

/** An event for the log. Neither part may hold a secret: no key, token, password, or address that can contain one. */
export interface AuditEntry {
  action: AuditAction;
  /** What it happened to: its id, and its name as people know it. */
  targetId?: string | null;
  target?: string | null;
  details?: Record<string, string | number | boolean | null | string[]>;
}

/** Where a request came from. */
export interface RequestSource {
  address: string;
  userAgent: string;
}
