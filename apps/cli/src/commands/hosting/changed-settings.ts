import type { HostingSettingsInput } from '@palestra/protocol';

/** The values of `addHostingOptions`. */
export interface HostingFlags {
  minWarm?: number;
  max?: number;
  concurrency?: number;
  idle?: number;
  drain?: number;
  startTimeout?: number;
  cpus?: number;
  memory?: number;
  pids?: number;
  disk?: number;
  gpus?: number;
  egress?: HostingSettingsInput['egress'];
  isolation?: HostingSettingsInput['isolation'];
  provider?: HostingSettingsInput['provider'];
  env: string[];
  removeEnv?: string[];
}

/**
 * The settings that the options change, on top of `known()`, which is called only then. Null if no option is set.
 */
export async function changedSettings(
  flags: HostingFlags,
  known: () => Promise<HostingSettingsInput>,
): Promise<HostingSettingsInput | null> {
  const changes: HostingSettingsInput = {
    min_warm: flags.minWarm,
    max: flags.max,
    concurrency: flags.concurrency,
    idle_s: flags.idle,
    drain_s: flags.drain,
    start_timeout_s: flags.startTimeout,
    cpus: flags.cpus,
    memory_mb: flags.memory,
    pids: flags.pids,
    disk_mb: flags.disk,
    gpus: flags.gpus,
    egress: flags.egress,
    isolation: flags.isolation,
    provider: flags.provider,
  };
  const present = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
  const { env, removeEnv = [] } = flags;
  if (Object.keys(present).length === 0 && env.length === 0 && removeEnv.length === 0) return null;
  const settings = await known();
  return { ...settings, ...present, variables: changedVariables(settings.variables ?? {}, env, removeEnv) };
}

function changedVariables(known: Record<string, string>, env: readonly string[], removed: readonly string[]): Record<string, string> {
  const kept = Object.entries(known).filter(([name]) => !removed.includes(name));
  const added = env.map((text): [string, string] => {
    const at = text.indexOf('=');
    return at === -1 ? [text, process.env[text]!] : [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries([...kept, ...added]);
}
