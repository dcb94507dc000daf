/** Labels of all that this service creates in a cluster. */
export const LABEL = {
  installation: 'palestra.dev/installation',
  instance: 'palestra.dev/instance',
  version: 'palestra.dev/version',
  /** `server` or `build`. */
  role: 'palestra.dev/role',
  /** `none`, `open` or `build`; network policies select pods by it. */
  egress: 'palestra.dev/egress',
  /** Of a build. */
  deploy: 'palestra.dev/deploy',
} as const;

/** Annotations, whose values labels could not have. */
export const ANNOTATION = { environment: 'palestra.dev/environment', deploy: 'palestra.dev/deploy' } as const;

export type Role = 'server' | 'build';
export type EgressKind = 'none' | 'open';
/** There is a network policy for each. */
export type PolicyKind = EgressKind | 'build';

export const names = {
  server: (id: string) => `palestra-${id}`,
  policy: (installation: string, kind: string) => `palestra-${installation.toLowerCase()}-${kind}`,
};

export const selector = (labels: Record<string, string>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
