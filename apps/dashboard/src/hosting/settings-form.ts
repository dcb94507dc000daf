import { type HostingSettings, type HostingSettingsInput, ISOLATIONS } from '@palestra/protocol';

/** Numbers of the settings: least, most, step of their inputs, as the API accepts them. */
export const NUMBERS = {
  min_warm: [0, 100, 1],
  max: [1, 1_000, 1],
  concurrency: [1, 10_000, 1],
  idle_s: [0, 86_400, 1],
  drain_s: [0, 86_400, 1],
  start_timeout_s: [1, 3_600, 1],
  cpus: [0.1, 256, 'any'],
  memory_mb: [64, 4_194_304, 1],
  pids: [16, 100_000, 1],
  disk_mb: [16, 1_048_576, 1],
  gpus: [0, 16, 1],
} as const satisfies Partial<Record<keyof HostingSettings, readonly [number, number, number | 'any']>>;
export type NumberName = keyof typeof NUMBERS;

/** The texts of the form. */
export interface SettingsForm extends Record<NumberName, string> {
  provider: string;
  isolation: string;
  egress: 'none' | 'open' | 'hosts';
  /** Names, with commas, spaces or line ends between them. */
  hosts: string;
  /** `NAME=value`, one per line. */
  variables: string;
}

export function formOf(settings: HostingSettings): SettingsForm {
  const { egress, variables } = settings;
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, String(settings[name as NumberName])]));
  return {
    ...(numbers as Record<NumberName, string>),
    provider: settings.provider ?? '',
    isolation: settings.isolation ?? '',
    egress: typeof egress === 'string' ? egress : 'hosts',
    hosts: typeof egress === 'string' ? '' : egress.join(', '),
    variables: Object.entries(variables)
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
  };
}

/** Throws for a line without a name. */
export function settingsOf(form: SettingsForm, known: HostingSettings): HostingSettingsInput {
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, Number(form[name as NumberName])]));
  return {
    ...known,
    ...(numbers as Record<NumberName, number>),
    provider: form.provider === '' ? null : (form.provider as NonNullable<HostingSettings['provider']>),
    isolation: ISOLATIONS.find((one) => one === form.isolation) ?? null,
    egress: form.egress === 'hosts' ? form.hosts.split(/[\s,]+/).filter(Boolean) : form.egress,
    variables: variablesOf(form.variables, known.variables),
  };
}

/** Values with several lines cannot be written in the form: those that did not change stay as they are. */
function variablesOf(text: string, known: Record<string, string>): Record<string, string> {
  const unchanged = Object.entries(known)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n');
  if (text === unchanged) return known;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line): [string, string] => {
      const at = line.indexOf('=');
      if (at < 1) throw new Error(`“${line}” is not a variable. Write NAME=value, one per line.`);
      return [line.slice(0, at).trim(), line.slice(at + 1)];
    }),
  );
}
