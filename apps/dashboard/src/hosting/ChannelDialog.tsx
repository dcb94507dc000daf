import { useMutation, useQuery } from '@tanstack/react-query';
import type { ChannelView } from '@palestra/protocol';
import { type FormEvent, useState } from 'react';
import { type EnvironmentName, promote, rollBack, versionDiffQuery } from '../data/hosting/hosting.ts';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Dialog } from '../frame/Dialog.tsx';
import { BreakingChanges } from './VersionDiffDialog.tsx';

export type Change = { kind: 'promote' | 'canary'; version: number } | { kind: 'roll-back'; channel: ChannelView };

interface Props {
  environment: EnvironmentName;
  change: Change;
  channels: readonly ChannelView[];
  onClose: () => void;
}

/** Confirms a change of a channel, and shows what it breaks for clients. */
export function ChannelDialog({ environment, change, channels, onClose }: Props) {
  if (change.kind !== 'roll-back') return <PromoteDialog environment={environment} {...change} channels={channels} onClose={onClose} />;
  const { name, version, canary_version: canary, previous_version: previous } = change.channel;
  return (
    <ConfirmDialog
      title={canary === null ? `Roll back ${name}?` : `End the canary of ${name}?`}
      action={canary === null ? `Roll back to version ${previous}` : 'End canary'}
      onConfirm={() => rollBack(environment, name)}
      onClose={onClose}
    >
      <p>
        {canary === null
          ? `New sessions get version ${previous} instead of version ${version}.`
          : `New sessions get only version ${version}, none get version ${canary}.`}{' '}
        Open sessions finish on their version.
      </p>
    </ConfirmDialog>
  );
}

function PromoteDialog({
  environment,
  kind,
  version,
  channels,
  onClose,
}: {
  environment: EnvironmentName;
  kind: 'promote' | 'canary';
  version: number;
  channels: readonly ChannelView[];
  onClose: () => void;
}) {
  const [channel, setChannel] = useState('stable');
  const [percent, setPercent] = useState('10');
  const current = channels.find(({ name }) => name === channel)?.version;
  const isNew = current === undefined;
  const diff = useQuery({
    ...versionDiffQuery(environment, current ?? version, version),
    enabled: current !== undefined && current !== version,
    retry: false,
  });
  const isCanary = kind === 'canary';
  const save = useMutation({
    mutationFn: () => promote(environment, version, channel, isCanary ? Number(percent) : 100),
    onSuccess: onClose,
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Dialog title={isCanary ? `Make version ${version} a canary?` : `Promote version ${version}?`} open onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-3">
        <p>
          {isCanary
            ? 'It gets a share of the new sessions of the channel. If it fails more often than the version beside it, the service ends the canary by itself.'
            : isNew
              ? `The new channel ${channel} names version ${version}.`
              : `New sessions get version ${version} instead of version ${current}. Open sessions finish on their version.`}
        </p>
        <div className="flex flex-wrap gap-3">
          <label className="flex w-[180px] flex-col gap-[2px]">
            <span className="label">Channel</span>
            <input
              className="input"
              list="hosting-channels"
              required
              pattern="[a-z][a-z0-9\-]{0,31}"
              title="1 to 32 lower-case letters, digits or hyphens"
              value={channel}
              onChange={(event) => setChannel(event.target.value)}
            />
            <datalist id="hosting-channels">
              {channels.map(({ name }) => (
                <option key={name} value={name} />
              ))}
            </datalist>
          </label>
          {isCanary && (
            <label className="flex w-[170px] flex-col gap-[2px]">
              <span className="label">Percent of new sessions</span>
              <input
                className="input num"
                type="number"
                required
                min={1}
                max={99}
                step={1}
                value={percent}
                onChange={(event) => setPercent(event.target.value)}
              />
            </label>
          )}
        </div>
        {diff.data && <BreakingChanges diff={diff.data} />}
        <div className="flex items-center gap-2">
          <button type="submit" className="button primary" disabled={save.isPending || (isCanary && isNew)}>
            {isCanary ? 'Start canary' : `Promote version ${version}`}
          </button>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
        </div>
        <p role="alert" className="text-bad empty:hidden">
          {save.error?.message ?? (isCanary && isNew ? `There is no channel ${channel}. Promote a version to it first.` : '')}
        </p>
      </form>
    </Dialog>
  );
}
