import type { Backend } from './backend.port.ts';
import type { SessionPolicy } from './session-policy.ts';

/** Who asks. `anonymous` callers exist only when the server allows them (PALESTRA_ANONYMOUS=1). */
export interface Caller {
  userId: string;
  orgId: string;
  orgName: string;
  /** The key, also of a browser session that a key opened; null for a browser session opened by a link, and for guests. */
  keyId: string | null;
  scopes: string[];
  anonymous: boolean;
  /** Sessions that the key, and that the organisation may have open at the same time; null = no limit. */
  maxSessions: { key: number | null; org: number | null };
  /** Where the request came from, for the audit log; absent on the session plane. */
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
  /** Its sessions live in a process beside this one: each is served by the API process that opened it. */
  owned: boolean;
  /** What its page says of it; `readme` is Markdown, `version` the number that `owner/name@number` selects. */
  about?: { description: string; readme: string | null; version: number };
}

export interface EnvironmentDirectory {
  /**
   * The environment that a request names. `deployment` is the X-Deployment header: `owner/name`, or a bare name in the
   * caller's own namespace (then any public one that is unique by that name). Null, or an unknown one, means the server's
   * fallback deployment when it has one. Throws `deployment_not_found`.
   */
  resolve(deployment: string | null, caller: Caller): Promise<HostedEnvironment>;
  /** The version that a stored session is pinned to. Throws `session_lost` when it is gone. */
  version(versionId: string): Promise<HostedEnvironment>;
}
