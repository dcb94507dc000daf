import type { Organisation } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { changeOrganisation, createOrganisation, organisationQuery } from '../data/accounts.ts';
import { formatCount } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { ShownOnce } from '../frame/ShownOnce.tsx';
import { OwnersOnly, Panel } from './parts.tsx';

const asLimit = (text: string): number | null => (text.trim() === '' ? null : Number(text));
const asText = (limit: number | null): string => (limit === null ? '' : String(limit));

function OrganisationSettings({ organisation }: { organisation: Organisation }) {
  const [days, setDays] = useState(asText(organisation.retention_days));
  const [limit, setLimit] = useState(asText(organisation.max_sessions));
  const save = useMutation({ mutationFn: () => changeOrganisation({ retention_days: asLimit(days), max_sessions: asLimit(limit) }) });
  const owner = organisation.role === 'owner';
  const changed = asLimit(days) !== organisation.retention_days || asLimit(limit) !== organisation.max_sessions;
  const shorter = asLimit(days) !== null && (organisation.retention_days === null || asLimit(days)! < organisation.retention_days);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <Setting label="Keep rollouts for" unit="days without new events" hint="A run can override this. Leave empty to keep them forever.">
        <input
          className="input num w-[120px]"
          type="number"
          min={1}
          max={36_500}
          step={1}
          placeholder="Forever"
          readOnly={!owner}
          value={days}
          onChange={(event) => setDays(event.target.value)}
        />
      </Setting>
      <Setting label="Concurrent sessions" unit="open" hint="Maximum for all keys together. Leave empty for the default of the server.">
        <input
          className="input num w-[120px]"
          type="number"
          min={1}
          max={1_000_000}
          step={1}
          placeholder="Default"
          readOnly={!owner}
          value={limit}
          onChange={(event) => setLimit(event.target.value)}
        />
      </Setting>
      {owner && changed && shorter && (
        <p className="text-bad">
          Palestra will permanently erase rollouts without new events for {formatCount(asLimit(days)!)} days, including those of existing
          runs.
        </p>
      )}
      {owner && (
        <div className="flex items-center gap-3">
          <button type="submit" className="button primary" disabled={!changed || save.isPending}>
            Save
          </button>
          <span role="status" className={save.error ? 'text-bad' : 'text-ink-2'}>
            {save.error ? save.error.message : save.isSuccess && !changed ? 'Saved.' : ''}
          </span>
        </div>
      )}
    </form>
  );
}

function Setting({ label, unit, hint, children }: { label: string; unit: string; hint: string; children: React.ReactNode }) {
  return (
    <label className="grid grid-cols-[200px_120px_minmax(0,1fr)] items-center gap-2 max-[760px]:grid-cols-1">
      <span className="text-ink-2">{label}</span>
      {children}
      <span className="text-ink-3">
        {unit}. {hint}
      </span>
    </label>
  );
}

function CreateOrganisation() {
  const [name, setName] = useState('');
  const create = useMutation({ mutationFn: createOrganisation, onSuccess: () => setName('') });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate(name.trim());
  };
  return (
    <>
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <label className="flex w-[320px] max-w-full flex-col gap-[2px]">
          <span className="label">Name: lower-case letters, digits, hyphens</span>
          <input
            className="input"
            required
            maxLength={63}
            pattern="[a-z0-9]([a-z0-9\-]*[a-z0-9])?"
            title="Lower-case letters, digits and hyphens, with a letter or digit at both ends"
            placeholder="vision-team"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <button type="submit" className="button" disabled={create.isPending}>
          Create organisation
        </button>
        <span role="alert" className="self-center text-bad empty:hidden">
          {create.error?.message}
        </span>
      </form>
      {create.data && (
        <div className="max-w-[840px]">
          <ShownOnce title={`You are the owner of ${create.data.organisation.name}`} text={create.data.sign_in_url}>
            <p className="text-ink-2">
              The link signs in one browser and expires after a day. In this browser, it would switch to the new organisation. To use both,
              open the link in another browser profile.
            </p>
          </ShownOnce>
        </div>
      )}
    </>
  );
}

export function OrganisationTab() {
  const organisation = useQuery(organisationQuery);
  return (
    <Loaded query={organisation}>
      {(data) => (
        <>
          {data.role !== 'owner' && <OwnersOnly />}
          <Panel
            title={data.name}
            about={
              <>
                Created <Age iso={data.created_at} />. You are {data.role === 'owner' ? 'an owner' : 'a member'}. The name is part of
                addresses and environment names, so you cannot change it.
              </>
            }
          >
            <OrganisationSettings key={data.role} organisation={data} />
          </Panel>
          {data.role === 'owner' && (
            <Panel
              title="New organisation"
              about="It has its own runs, environments, keys and members, and sees nothing of this organisation. You become its owner."
            >
              <CreateOrganisation />
            </Panel>
          )}
        </>
      )}
    </Loaded>
  );
}
