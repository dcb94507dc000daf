/** Everything that the audit log records, by what it happens to. */
export const AUDIT_ACTIONS = [
  'sign_in',
  'sign_out',
  'sign_in_link.create',
  'browser_session.end',
  'key.create',
  'key.revoke',
  'member.add',
  'member.change',
  'member.remove',
  'organisation.create',
  'organisation.change',
  'environment.create',
  'environment.change',
  'environment.deploy',
  'environment.delete',
  'task_set.publish',
  'task_set.delete',
  'file.delete',
  'share.create',
  'share.delete',
  'run.delete',
  'rollout.delete',
  'annotation.delete',
  'view.delete',
  'export.create',
  'export.delete',
  'audit.export',
  'audit.expire',
  'secret.rotate',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

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
