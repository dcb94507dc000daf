import { ApiError, limitRequests } from './http.ts';

/** The paths below a rollout that a share link can read (`@Shareable()` in apps/api). */
const SHOWN = /^(?:\/(?:header|outline|calls|messages|messages\/\d+\/body|objects\/[^/]+))?$/;

/**
 * Limits requests to what a share link of this rollout can read; null removes the limit. Other requests fail without being sent, because the
 * server would refuse them, and pages show that these parts need an account.
 */
export function limitToSharedRollout(rollout: string | null): void {
  if (rollout === null) return limitRequests(null);
  const root = `/v1/rollouts/${rollout}`;
  limitRequests((path) => {
    const [plain] = path.toLowerCase().split('?');
    if (plain === '/v1/me' || plain === '/v1/shared' || plain === '/v1/login') return null;
    if (plain!.startsWith(root) && SHOWN.test(plain!.slice(root.length))) return null;
    return new ApiError(403, 'account_needed', 'This needs an account of the organisation. The link shows only the rollout.');
  });
}
