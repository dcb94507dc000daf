import {
  type Capabilities,
  type Egress,
  type Isolation,
  ISOLATION_LEVELS,
  type ProviderName,
  type Resources,
  type RunSettings,
} from '@palestra/hosting';
import { type HostingSettings, PalestraError } from '@palestra/protocol';
import { hostingSettingsSchema } from '@palestra/protocol/schemas';

const DEFAULTS: HostingSettings = hostingSettingsSchema.parse({});
/** Settings that only an engine with limits enforces, and their names in `Resources`. */
const LIMITS = { cpus: 'cpus', memory_mb: 'memoryMb', pids: 'pids', disk_mb: 'diskMb' } as const;

const egressOf = ({ egress }: HostingSettings): Egress =>
  typeof egress === 'string' ? { kind: egress } : { kind: 'hosts', hosts: egress };

/** The weakest isolation of the engine that is at least what the settings ask for, by default a container if it has some. Null: it has none. */
export function isolationOf({ isolation }: HostingSettings, capabilities: Capabilities): Isolation | null {
  const usual = capabilities.isolation.includes('container') ? 'container' : 'none';
  const least = ISOLATION_LEVELS.indexOf(isolation ?? usual);
  return ISOLATION_LEVELS.slice(least).find((level) => capabilities.isolation.includes(level)) ?? null;
}

/** How instances of an environment run, except for its secrets. */
export function runSettings(settings: HostingSettings, capabilities: Capabilities): Omit<RunSettings, 'secrets'> {
  const { cpus, memory_mb: memoryMb, pids, disk_mb: diskMb, gpus, variables } = settings;
  const isolation = isolationOf(settings, capabilities) ?? 'none';
  return { resources: { cpus, memoryMb, pids, diskMb, gpus }, egress: egressOf(settings), isolation, variables };
}

/** Settings of an environment whose author set none: the strictest network rule that the engine enforces. */
export const defaultSettings = (capabilities: Capabilities | null): HostingSettings => ({
  ...DEFAULTS,
  egress: capabilities === null || capabilities.egress.includes('none') ? 'none' : 'open',
});

/** Throws `hosting_unsupported` for settings that the engine cannot enforce, and names each of them. */
export function assertSupported(settings: HostingSettings, engine: ProviderName, capabilities: Capabilities): void {
  const problems = [...unsupported(settings, capabilities)];
  if (problems.length === 0) return;
  throw new PalestraError('hosting_unsupported', {
    detail: `The engine "${engine}" of this server cannot enforce these settings: ${problems.join('; ')}.`,
  });
}

function* unsupported(settings: HostingSettings, capabilities: Capabilities): Generator<string> {
  const egress = egressOf(settings).kind;
  if (!capabilities.egress.includes(egress)) {
    const shown = egress === 'hosts' ? 'a list of hosts' : `"${egress}"`;
    yield `egress ${shown} (it has ${capabilities.egress.map((kind) => (kind === 'hosts' ? 'lists of hosts' : `"${kind}"`)).join(', ')})`;
  }
  if (isolationOf(settings, capabilities) === null) yield `isolation "${settings.isolation}" (it has ${capabilities.isolation.join(', ')})`;
  if (settings.gpus > 0 && !capabilities.gpus) yield `gpus ${settings.gpus} (it has none)`;
  const { maxMemoryMb, limits, unlimited = [] } = capabilities;
  if (limits && maxMemoryMb !== null && settings.memory_mb > maxMemoryMb) yield `memory_mb ${settings.memory_mb} (it has ${maxMemoryMb})`;
  for (const [name, resource] of Object.entries(LIMITS) as [keyof typeof LIMITS, keyof Resources][]) {
    const isEnforced = limits && !unlimited.includes(resource);
    if (!isEnforced && settings[name] !== DEFAULTS[name]) yield `${name} ${settings[name]} (it has no ${limits ? 'such limit' : 'limits'})`;
  }
}
