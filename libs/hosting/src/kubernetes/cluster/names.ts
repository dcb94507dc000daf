/** Labels of all that this service creates in a cluster. */
export const LABEL = {
  installation: 'palestra.dev/installation',
  instance: 'palestra.dev/instance',
  version: 'palestra.dev/version',
  /** Id of a sandbox, of all that belongs to it. */
  sandbox: 'palestra.dev/sandbox',
  /** See `Role`. */
  role: 'palestra.dev/role',
  /** See `PolicyKind`; network policies select pods by it. */
  egress: 'palestra.dev/egress',
  /** Of a build. */
  deploy: 'palestra.dev/deploy',
  /** Of an instance from a warm pool: agent-sandbox lets claims label pods in this domain only. */
  claimed: 'sandbox.users.io/palestra-instance',
} as const;

/** Annotations, whose values labels could not have. */
export const ANNOTATION = { environment: 'palestra.dev/environment', deploy: 'palestra.dev/deploy' } as const;

/** `warm`: a server that a warm pool has started. */
export type Role = 'server' | 'build' | 'warm' | 'sandbox' | 'gateway';
export type EgressKind = 'none' | 'open';
/** There is a network policy for each. */
export type PolicyKind = EgressKind | 'build' | 'gateway';

export const names = {
  server: (id: string) => `palestra-${id}`,
  /** Template and warm pool of a version. */
  pool: (versionId: string) => `palestra-v-${versionId}`,
  sandbox: (id: string) => `palestra-sandbox-${id}`,
  gateway: (id: string) => `palestra-gateway-${id}`,
  policy: (installation: string, kind: string) => `palestra-${installation.toLowerCase()}-${kind}`,
};

export const selector = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
