import type { AuditEvent } from '../data/audit.ts';

/** Groups of actions for the filter. */
export const ACTION_GROUPS: readonly [value: string, label: string][] = [
  ['sign_in', 'Sign-ins'],
  ['sign_out', 'Sign-outs'],
  ['sign_in_link', 'Sign-in links'],
  ['browser_session', 'Browsers'],
  ['key', 'API keys'],
  ['member', 'Members'],
  ['organisation', 'Organisations'],
  ['environment', 'Environments'],
  ['deploy', 'Deploys'],
  ['task_set', 'Task sets'],
  ['file', 'Files'],
  ['share', 'Shared links'],
  ['run', 'Runs'],
  ['rollout', 'Rollouts'],
  ['annotation', 'Annotations'],
  ['view', 'Views'],
  ['review_queue', 'Review queues'],
  ['export', 'Exports'],
  ['alert', 'Alerts'],
  ['webhook', 'Webhooks'],
  ['audit', 'Audit log'],
  ['secret', 'Secret key'],
];

const TEXTS: Record<string, string> = {
  sign_in: 'Signed in',
  sign_out: 'Signed out',
  'sign_in_link.create': 'Created a sign-in link',
  'browser_session.end': 'Signed a browser out',
  'key.create': 'Created a key',
  'key.revoke': 'Revoked a key',
  'member.add': 'Added a member',
  'member.change': 'Changed a role',
  'member.remove': 'Removed a member',
  'organisation.create': 'Created an organisation',
  'organisation.change': 'Changed the settings',
  'environment.create': 'Created an environment',
  'environment.change': 'Changed an environment',
  'environment.deploy': 'Added a version',
  'environment.report': 'Replaced the report',
  'environment.hosting': 'Changed the hosting settings',
  'environment.promote': 'Promoted a version',
  'environment.rollback': 'Rolled back a channel',
  'environment.restart': 'Restarted an instance',
  'environment.delete': 'Deleted an environment',
  'environment.secret_set': 'Set a secret of an environment',
  'environment.secret_delete': 'Deleted a secret of an environment',
  'environment.git_link': 'Linked an environment to a repository',
  'environment.git_unlink': 'Unlinked an environment from its repository',
  'environment.git_secret': 'Replaced the secret of a git webhook',
  'deploy.create': 'Started a deploy',
  'deploy.cancel': 'Cancelled a deploy',
  'task_set.publish': 'Published tasks',
  'task_set.delete': 'Deleted a task set',
  'file.delete': 'Deleted files',
  'share.create': 'Created a shared link',
  'share.delete': 'Revoked a shared link',
  'run.delete': 'Deleted a run',
  'demo.delete': 'Removed the demo',
  'rollout.delete': 'Deleted a rollout',
  'annotation.bulk': 'Annotated many rollouts',
  'annotation.delete': 'Deleted an annotation',
  'view.delete': 'Deleted a view',
  'review_queue.create': 'Created a review queue',
  'review_queue.close': 'Closed a review queue',
  'review_queue.delete': 'Deleted a review queue',
  'export.create': 'Started an export',
  'export.delete': 'Deleted an export',
  'alert.create': 'Created an alert',
  'alert.change': 'Changed an alert',
  'alert.delete': 'Deleted an alert',
  'webhook.create': 'Added a webhook',
  'webhook.change': 'Changed a webhook',
  'webhook.rotate': 'Replaced the secret of a webhook',
  'webhook.delete': 'Deleted a webhook',
  'audit.export': 'Exported the audit log',
  'audit.expire': 'Deleted old events',
  'secret.rotate': 'Rotated the secret key',
};

/** The text of an action. A newer server can send actions that this page does not know. */
export const actionText = ({ action, refused }: Pick<AuditEvent, 'action' | 'refused'>): string =>
  refused && action === 'sign_in' ? 'Failed to sign in' : (TEXTS[action] ?? action);

const valueOf = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(String).join(' ');
  return value === null ? 'none' : typeof value === 'object' ? JSON.stringify(value) : String(value as string | number | boolean);
};

/** `scopes: sessions rollouts · expires at: none`. */
export const detailsOf = ({ details }: Pick<AuditEvent, 'details'>): string =>
  Object.entries(details)
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${valueOf(value)}`)
    .join(' · ');
