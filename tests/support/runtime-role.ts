/** The role that services of the tests run as, with rights on rows alone, as in a deployment; specs themselves use the superuser. */
const ROLE = 'palestra_runtime';

export interface DatabaseUrls {
  /** As the runtime role, when `url` is the superuser's. */
  runtime: string;
  /** As given; null when it is no superuser's: then the service does both as that role. */
  migration: string | null;
}

/** Migrating as `migration` creates the role and its rights. */
export function runtimeRole(url: string): DatabaseUrls {
  const runtime = new URL(url);
  if (runtime.username !== 'postgres') return { runtime: url, migration: null };
  runtime.username = ROLE;
  return { runtime: runtime.href, migration: url };
}
