/** The role of services in tests, with rights on rows only, as in a deployment. Specs use the superuser. */
const ROLE = 'palestra_runtime';

export interface DatabaseUrls {
  /** `url` with the runtime role if it is the superuser's. */
  runtime: string;
  /** `url` if it is the superuser's; else null, and the service migrates with the given role. */
  migration: string | null;
}

/** Migrating as `migration` creates the role and its rights. */
export function runtimeRole(url: string): DatabaseUrls {
  const runtime = new URL(url);
  if (runtime.username !== 'postgres') return { runtime: url, migration: null };
  runtime.username = ROLE;
  return { runtime: runtime.href, migration: url };
}
