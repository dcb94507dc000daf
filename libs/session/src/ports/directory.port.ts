import type { Backend } from './backend.port.ts';
import type { SessionPolicy } from './session-policy.ts';

/** The authenticated client. `anonymous` callers exist only when the server allows them (PALESTRA_ANONYMOUS=1). */
export interface Caller {
  userId: string;
  orgId: string;
  orgName: string;
  /** The API key, also for a browser session that a key opened; null for a browser session that a link opened, and for anonymous callers. */
  keyId: string | null;
  scopes: string[];
  anonymous: boolean;
  /** The user themself signed this browser in, without a key: it may switch to their other organisations. */
  canSwitch?: boolean;
  /** How many sessions the key and the organisation may have open at the same time. Null: no limit. */
  maxSessions: { key: number | null; org: number | null };
  /** Origin of the request, for the audit log; absent for requests of sessions. */
  source?: { address: string; userAgent: string };
}

/** An environment version that sessions can be opened on. */
export interface HostedEnvironment {
  environmentId: string;
  versionId: string;
  owner: string;
  name: string;
  backend: Backend;
  policy: SessionPolicy;
  /** Its sessions run in a child process of the API process that opened them, which therefore serves them. */
  owned: boolean;
  /** `policy.capacity` is of all API processes together, although each of them owns the sessions that it opens. */
  sharedCapacity?: boolean;
  /**
   * The version on which a new session opens: this one, or another one that gets a share of the sessions. Depends only on the SID, so that
   * a repeated request opens the same version.
   */
  forSession?(sid: string): HostedEnvironment;
  /**
   * The description on its page; `readme` is Markdown, `version` the number that `owner/name@number` selects, `githubUrl` the address of its
   * source.
   */
  about?: { description: string; readme: string | null; version: number; githubUrl?: string | null };
}

export interface EnvironmentDirectory {
  /**
   * The environment that a request names. `deployment` is the X-Deployment header: `owner/name`, or a bare name in the caller's namespace,
   * or else of the only public environment with that name. Null or an unknown name means the server's fallback deployment if it has one.
   * Throws `deployment_not_found`.
   */
  resolve(deployment: string | null, caller: Caller): Promise<HostedEnvironment>;
  /** The version that a stored session is pinned to. Throws `session_lost` when it is gone. */
  version(versionId: string): Promise<HostedEnvironment>;
}
