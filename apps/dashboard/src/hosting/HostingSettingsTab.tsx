import { useMutation, useQuery } from '@tanstack/react-query';
import type { EnvironmentDetails, HostingOffer, HostingSettings } from '@palestra/protocol';
import { type FormEvent, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { hostingOfferQuery, hostingSettingsQuery, saveHostingSettings } from '../data/hosting/hosting.ts';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { Panel } from '../settings/parts.tsx';
import { GitPanel } from './GitPanel.tsx';
import { SecretsPanel } from './SecretsPanel.tsx';
import { formOf, settingsOf } from './settings-form.ts';
import { SettingsFields } from './SettingsFields.tsx';

/** Scale and limits of the instances, secrets, and the git repository whose pushes are deployed. */
export function HostingSettingsTab({ environment: { owner, name } }: { environment: EnvironmentDetails }) {
  const settings = useQuery(hostingSettingsQuery({ owner, name }));
  const offer = useQuery(hostingOfferQuery);
  const error = errorInstead(settings) ?? errorInstead(offer);
  if (error) return <ErrorState error={error} retry={() => void Promise.all([settings.refetch(), offer.refetch()])} />;
  if (!settings.data || !offer.data) return <SkeletonRows />;
  return (
    <div className="max-w-[960px] pb-6">
      <Panel title="Instances" about="Limits and network apply to new instances. Running ones finish their sessions and are replaced.">
        {!offer.data.hosts && <p className="text-bad">{offer.data.detail}</p>}
        <Scale environment={{ owner, name }} settings={settings.data} offer={offer.data} />
      </Panel>
      <SecretsPanel environment={{ owner, name }} />
      <GitPanel environment={{ owner, name }} />
    </div>
  );
}

function Scale({
  environment,
  settings,
  offer,
}: {
  environment: { owner: string; name: string };
  settings: HostingSettings;
  offer: HostingOffer;
}) {
  const [form, setForm] = useState(() => formOf(settings));
  const isChanged = JSON.stringify(form) !== JSON.stringify(formOf(settings));
  const save = useMutation({ mutationFn: async () => saveHostingSettings(environment, settingsOf(form, settings)) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <SettingsFields form={form} set={(change) => setForm((before) => ({ ...before, ...change }))} offer={offer} />
      <div className="flex items-center gap-3">
        <button type="submit" className="button primary" disabled={!isChanged || save.isPending}>
          Save settings
        </button>
        <span role="status" className={save.error ? 'text-bad' : 'text-ink-2'}>
          {save.error ? save.error.message : save.isSuccess && !isChanged ? 'Saved.' : ''}
        </span>
      </div>
    </form>
  );
}
