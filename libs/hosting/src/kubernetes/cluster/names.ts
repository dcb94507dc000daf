/** Labels of all that this service creates in a cluster. */
export const LABEL = {
  installation: 'palestra.dev/installation',
  instance: 'palestra.dev/instance',
  version: 'palestra.dev/version',
  /** `server`, `build`, or `warm`: a server that a warm pool has started. */
  role: 'palestra.dev/role',
  /** `none`, `open` or `build`; network policies select pods by it. */
  egress: 'palestra.dev/egress',
  /** Of a build. */
  deploy: 'palestra.dev/deploy',
  /** Of an instance from a warm pool: agent-sandbox lets claims label pods in this domain only. */
  claimed: 'sandbox.users.io/palestra-instance',
} as const;

/** Annotations, whose values labels could not have. */
export const ANNOTATION = { environment: 'palestra.dev/environment', deploy: 'palestra.dev/deploy' } as const;

export type Role = 'server' | 'build' | 'warm';
export type EgressKind = 'none' | 'open';
/** There is a network policy for each. */
export type PolicyKind = EgressKind | 'build';

export const names = {
  server: (id: string) => `palestra-${id}`,
  /** Template and warm pool of a version. */
  pool: (versionId: string) => `palestra-v-${versionId}`,
  policy: (installation: string, kind: string) => `palestra-${installation.toLowerCase()}-${kind}`,
};

export const selector = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
