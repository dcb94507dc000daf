/** Words of hosting (docs/hosting.md). */

/** Where instances run. */
export const HOSTING_PROVIDERS = ['process', 'docker', 'kubernetes'] as const;
export type HostingProvider = (typeof HOSTING_PROVIDERS)[number];

/** How strongly the code of an environment is separated from the machine, weakest first. `sandbox`: gVisor; `vm`: Kata or similar. */
export const ISOLATIONS = ['none', 'container', 'sandbox', 'vm'] as const;
export type IsolationLevel = (typeof ISOLATIONS)[number];

/** The last three are final. */
export const DEPLOY_STATES = ['queued', 'building', 'verifying', 'ready', 'failed', 'cancelled'] as const;
export type DeployState = (typeof DEPLOY_STATES)[number];
export const FINAL_DEPLOY_STATES: ReadonlySet<DeployState> = new Set(['ready', 'failed', 'cancelled']);

/** The last two are final. */
export const INSTANCE_STATES = ['starting', 'ready', 'draining', 'failed', 'stopped'] as const;
export type InstanceState = (typeof INSTANCE_STATES)[number];

/** Of log lines, least first. */
export const LOG_SEVERITIES = ['debug', 'info', 'warning', 'error'] as const;
export type LogSeverity = (typeof LOG_SEVERITIES)[number];
