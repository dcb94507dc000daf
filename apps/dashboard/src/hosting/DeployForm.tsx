import { useQuery } from '@tanstack/react-query';
import type { DeployView, EnvironmentDetails, HostingOffer, HostingSettings } from '@palestra/protocol';
import { Link } from '@tanstack/react-router';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { errorInstead } from '../data/http.ts';
import { deploy, deployArchive, deployQuery, hostingOfferQuery, hostingSettingsQuery, isOver } from '../data/hosting/hosting.ts';
import { meQuery } from '../data/queries.ts';
import { SkeletonRows } from '../frame/states.tsx';
import { archiveOf, nameOfSource, type SourceForm, SOURCE_KINDS, type SourceKind, sourceOf } from './deploy-source.ts';
import { DeployDetails } from './DeployDetails.tsx';
import { FolderChooser } from './FolderChooser.tsx';
import { formOf, settingsOf, type SettingsForm } from './settings-form.ts';
import { SettingsFields } from './SettingsFields.tsx';

const kindNames: Record<SourceKind, string> = { folder: 'Folder', git: 'Git', image: 'Image', url: 'URLs' };

/** Deploys a folder, a git repository, an image or running servers, and shows the build log. `environment`: null for a new one. */
export function DeployForm({ environment, kind = 'folder' }: { environment: EnvironmentDetails | null; kind?: SourceKind }) {
  const offer = useQuery(hostingOfferQuery);
  const stored = useQuery({
    ...hostingSettingsQuery({ owner: environment?.owner ?? '', name: environment?.name ?? '' }),
    enabled: environment !== null,
  });
  const [started, setStarted] = useState<DeployView | null>(null);
  if (started) return <Progress deploy={started} onAgain={() => setStarted(null)} />;
  const error = errorInstead(offer) ?? errorInstead(stored);
  if (error) return <p className="text-bad">{error.message}</p>;
  const settings = environment === null ? offer.data?.defaults : stored.data;
  if (!offer.data || !settings) return <SkeletonRows count={4} />;
  if (!offer.data.hosts) return <p className="text-ink-2">{offer.data.detail}</p>;
  if (!offer.data.can_deploy)
    return <p className="text-ink-2">Your API key or sign-in link lacks the scope “environments”, so you cannot deploy.</p>;
  return <Form environment={environment} kind={kind} offer={offer.data} settings={settings} onStarted={setStarted} />;
}

/** The deploy with its log, and a link to its environment. */
function Progress({ deploy: { id, environment }, onAgain }: { deploy: DeployView; onAgain: () => void }) {
  const [owner, name] = environment.split('/') as [string, string];
  const { data } = useQuery(deployQuery(id));
  return (
    <div className="flex flex-col gap-3">
      <div className="h-[min(460px,60vh)] min-h-[320px] overflow-hidden border border-line">
        <DeployDetails id={id} canManage />
      </div>
      <div className="flex items-center justify-end gap-2">
        {data && isOver(data) && data.state !== 'ready' && (
          <button type="button" className="button" onClick={onAgain}>
            Try again
          </button>
        )}
        <Link
          to="/environments/$owner/$name"
          params={{ owner, name }}
          search={data?.state === 'ready' ? {} : { tab: 'deploys', deploy: id }}
          className="button primary"
        >
          Open {environment}
        </Link>
      </div>
    </div>
  );
}

interface FormProps {
  environment: EnvironmentDetails | null;
  kind: SourceKind;
  offer: HostingOffer;
  settings: HostingSettings;
  onStarted: (deploy: DeployView) => void;
}

function Form({ environment, kind: first, offer, settings, onStarted }: FormProps) {
  const org = useQuery(meQuery).data?.org.name ?? '';
  const [source, setSource] = useState<SourceForm>({
    kind: first,
    folder: null,
    url: '',
    ref: '',
    subdirectory: '',
    image: '',
    port: '',
    urls: '',
  });
  const [typed, setTyped] = useState<string | null>(null);
  const [form, setForm] = useState<SettingsForm>(() => formOf(settings));
  const [isPublic, setPublic] = useState(false);
  const [promotes, setPromotes] = useState(true);
  const [busy, setBusy] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const name = typed ?? nameOfSource(source);
  const set = (change: Partial<SourceForm>) => setSource((before) => ({ ...before, ...change }));

  const start = async (signal: AbortSignal): Promise<DeployView> => {
    const target = environment ?? { owner: org, name: name.trim() };
    // Those of the environment stay if nothing was changed.
    const isChanged = JSON.stringify(form) !== JSON.stringify(formOf(settings));
    const options = {
      create: environment === null,
      ...(environment === null && { private: !isPublic }),
      channel: promotes ? undefined : null,
      ...(isChanged && { settings: settingsOf(form, settings) }),
    };
    if (source.kind !== 'folder') return deploy(target, { ...options, source: sourceOf(source) });
    setBusy('Packing the folder…');
    const archive = await archiveOf(source, signal);
    setBusy(`Uploading ${(archive.size / 1e6).toFixed(1)} MB…`);
    return deployArchive(target, archive, options, signal);
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setProblem(null);
    setBusy('Starting the deploy…');
    const controller = new AbortController();
    stop.current = controller;
    try {
      onStarted(await start(controller.signal));
    } catch (error) {
      if (!controller.signal.aborted) setProblem((error as Error).message);
    } finally {
      setBusy(null);
    }
  };
  const text = (
    label: string,
    key: 'url' | 'ref' | 'subdirectory' | 'image' | 'port',
    props: object,
    className = 'min-w-[160px] flex-1',
  ) => (
    <label className={`flex min-w-0 flex-col gap-[2px] ${className}`}>
      <span className="label">{label}</span>
      <input className="input mono w-full" value={source[key]} onChange={(event) => set({ [key]: event.target.value })} {...props} />
    </label>
  );
  return (
    <form onSubmit={(event) => void submit(event)} className="flex flex-col gap-3">
      <fieldset className="flex flex-wrap gap-x-4 gap-y-1">
        <legend className="label mb-1">Deploy from</legend>
        {SOURCE_KINDS.map((kind) => (
          <label key={kind} className="flex items-center gap-2">
            <input
              type="radio"
              name="source-kind"
              className="accent-[var(--accent)]"
              checked={source.kind === kind}
              onChange={() => set({ kind })}
            />
            {kindNames[kind]}
          </label>
        ))}
      </fieldset>
      {source.kind === 'folder' && <FolderChooser chosen={source.folder} onChoose={(folder) => set({ folder })} />}
      {source.kind === 'git' && (
        <div className="flex flex-wrap gap-2">
          {text('Repository URL', 'url', { required: true, maxLength: 2_000, placeholder: 'https://git.acme.example/envs.git' }, 'w-full')}
          {text('Branch, tag or commit', 'ref', { maxLength: 250, placeholder: 'Default branch' })}
          {text('Folder', 'subdirectory', { maxLength: 1_000, placeholder: 'Root' })}
        </div>
      )}
      {source.kind === 'image' && (
        <div className="flex flex-wrap gap-2">
          {text('Image, which the engine can pull', 'image', { required: true, maxLength: 500, placeholder: 'ghcr.io/acme/guess:1.0' })}
          {text('Port', 'port', { type: 'number', min: 1, max: 65_535, placeholder: 'Of the image' }, 'w-[110px]')}
        </div>
      )}
      {source.kind === 'url' && (
        <label className="flex flex-col gap-[2px]">
          <span className="label">URLs of running servers, one per line. They share the sessions.</span>
          <textarea
            className="input mono h-[64px] py-1"
            required
            spellCheck={false}
            placeholder="http://10.0.0.5:8000"
            value={source.urls}
            onChange={(event) => set({ urls: event.target.value })}
          />
        </label>
      )}
      {environment === null && (
        <div className="flex flex-wrap items-end gap-x-4 gap-y-2">
          <label className="flex min-w-[200px] flex-1 flex-col gap-[2px]">
            <span className="label">Name: 3 to 64 letters, digits, “-” or “_”</span>
            <input
              className="input w-full"
              required
              pattern="[A-Za-z0-9_\-]{3,64}"
              title="3 to 64 letters, digits, “-” or “_”"
              placeholder="guess"
              value={name}
              onChange={(event) => setTyped(event.target.value)}
            />
          </label>
          <label className="flex h-[28px] items-center gap-2">
            <input type="checkbox" className="accent-[var(--accent)]" checked={isPublic} onChange={() => setPublic(!isPublic)} />
            Public
          </label>
        </div>
      )}
      <label className="flex items-center gap-2">
        <input type="checkbox" className="accent-[var(--accent)]" checked={promotes} onChange={() => setPromotes(!promotes)} />
        New sessions get this version when it is ready
      </label>
      {source.kind !== 'url' && (
        <details>
          <summary className="cursor-pointer strong">Settings of its instances</summary>
          <div className="mt-2">
            <SettingsFields form={form} set={(change) => setForm((before) => ({ ...before, ...change }))} offer={offer} />
          </div>
        </details>
      )}
      <p role="alert" className="whitespace-pre-wrap text-bad [overflow-wrap:anywhere] empty:hidden">
        {problem}
      </p>
      <div className="flex items-center justify-end gap-3">
        <span role="status" className="label">
          {busy}
        </span>
        <button type="submit" className="button primary" disabled={busy !== null || (source.kind === 'folder' && source.folder === null)}>
          Deploy
        </button>
      </div>
    </form>
  );
}
