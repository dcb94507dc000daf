import type { AuditAction } from '@palestra/protocol';

/** An event for the log. No part may have a secret: no key, token, password, or address that can contain one. */
export interface AuditEntry {
  action: AuditAction;
  /** The changed object: its id and its name. */
  targetId?: string | null;
  target?: string | null;
  details?: Record<string, string | number | boolean | null | string[]>;
}

/** Origin of a request. */
export interface RequestSource {
  address: string;
  userAgent: string;
}
