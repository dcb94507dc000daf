import { HOSTING_PROVIDERS, type HostingOffer, type IsolationLevel } from '@palestra/protocol';
import type { ReactNode } from 'react';
import { NUMBERS, type NumberName, type SettingsForm } from './settings-form.ts';

const isolationNames: Record<IsolationLevel, string> = {
  none: 'None',
  container: 'Container',
  sandbox: 'Sandbox (gVisor)',
  vm: 'Virtual machine (Kata)',
};

interface Props {
  form: SettingsForm;
  set: (change: Partial<SettingsForm>) => void;
  offer: HostingOffer;
}

function Field({ label, hint, children }: { label: string; hint?: ReactNode; children: ReactNode }) {
  return (
    <label className="flex min-w-0 flex-col gap-[2px]">
      <span className="label">{label}</span>
      {children}
      {hint && <span className="label">{hint}</span>}
    </label>
  );
}

const grid = 'grid grid-cols-[repeat(auto-fill,minmax(130px,1fr))] gap-x-3 gap-y-2';
const wideGrid = 'grid grid-cols-[repeat(auto-fill,minmax(190px,1fr))] gap-x-3 gap-y-2 max-[560px]:grid-cols-2';

/** Scale, limits and network of the instances of an environment. What the provider cannot enforce is not offered. */
export function SettingsFields({ form, set, offer }: Props) {
  const number = (name: NumberName, label: string) => {
    const [min, max, step] = NUMBERS[name];
    return (
      <Field label={label}>
        <input
          className="input num"
          type="number"
          required
          min={min}
          max={max}
          step={step}
          value={form[name]}
          onChange={(event) => set({ [name]: event.target.value })}
        />
      </Field>
    );
  };
  return (
    <div className="flex flex-col gap-3">
      <div className={grid}>
        {number('min_warm', 'Always running')}
        {number('max', 'Most instances')}
        {number('concurrency', 'Sessions per instance')}
        {number('idle_s', 'Ends when idle for (s)')}
      </div>
      <div className={wideGrid}>
        {offer.limits && (
          <>
            {number('cpus', 'Processors')}
            {number('memory_mb', 'Memory (MB)')}
          </>
        )}
        {offer.gpus && number('gpus', 'GPUs')}
        <Field label="Network">
          <select className="input" value={form.egress} onChange={(event) => set({ egress: event.target.value as SettingsForm['egress'] })}>
            {(['none', 'hosts', 'open'] as const).map((kind) => (
              <option key={kind} value={kind} disabled={!offer.egress.includes(kind)}>
                {kind === 'none' ? 'None' : kind === 'open' ? 'All public addresses' : 'Only these hosts'}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Isolation, at least">
          <select className="input" value={form.isolation} onChange={(event) => set({ isolation: event.target.value })}>
            <option value="">What the provider has</option>
            {offer.isolation.map((level) => (
              <option key={level} value={level}>
                {isolationNames[level]}
              </option>
            ))}
          </select>
        </Field>
      </div>
      {form.egress === 'hosts' && (
        <Field label="Hosts" hint="With commas between them; *.acme.example is every host of a domain">
          <input
            className="input mono"
            required
            placeholder="pypi.org, *.acme.example"
            value={form.hosts}
            onChange={(event) => set({ hosts: event.target.value })}
          />
        </Field>
      )}
      {!offer.limits && offer.hosts && (
        <p className="text-ink-3">
          Instances are processes of this machine. Processors, memory and network are not limited, so deploy only code that you trust.
        </p>
      )}
      <details>
        <summary className="cursor-pointer text-ink-2">More settings</summary>
        <div className="mt-2 flex flex-col gap-3">
          <div className={grid}>
            {number('start_timeout_s', 'Must answer within (s)')}
            {number('drain_s', 'Drains at most (s)')}
            {offer.limits && (
              <>
                {number('pids', 'Processes')}
                {number('disk_mb', 'Temporary files (MB)')}
              </>
            )}
            <Field label="Provider">
              <select className="input" value={form.provider} onChange={(event) => set({ provider: event.target.value })}>
                <option value="">Default{offer.provider === null ? '' : `: ${offer.provider}`}</option>
                {HOSTING_PROVIDERS.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </Field>
          </div>
          <Field label="Environment variables" hint="NAME=value, one per line. Put secrets under Secrets, not here.">
            <textarea
              className="input mono h-[72px] py-1"
              spellCheck={false}
              value={form.variables}
              onChange={(event) => set({ variables: event.target.value })}
            />
          </Field>
        </div>
      </details>
    </div>
  );
}
