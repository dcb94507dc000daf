import { ApiError, limitRequests } from './http.ts';

/** Of a rollout's paths, those that a share link opens too (`@Shareable()` in apps/api). */
const SHOWN = /^(?:\/(?:header|outline|calls|messages|messages\/\d+\/body|objects\/[^/]+))?$/;

/**
 * Reads only what a share link of this rollout shows, and refuses the rest without asking the server, which would refuse it as well; null
 * lifts it. Pages built for members then say that these parts need an account.
 */
export function readOnlyRollout(rollout: string | null): void {
  if (rollout === null) return limitRequests(null);
  const own = `/v1/rollouts/${rollout}`;
  limitRequests((path) => {
    const [plain] = path.toLowerCase().split('?');
    if (plain === '/v1/me' || plain === '/v1/shared' || plain === '/v1/login') return null;
    if (plain!.startsWith(own) && SHOWN.test(plain!.slice(own.length))) return null;
    return new ApiError(403, 'account_needed', 'This needs an account of the organisation: the link shows the rollout alone.');
  });
}
