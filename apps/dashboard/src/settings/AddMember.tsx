import type { Role } from '@palestra/protocol';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { addMember } from '../data/accounts.ts';
import { ShownOnce } from '../frame/ShownOnce.tsx';

/** Adds a member and shows their sign-in link. */
export function AddMember() {
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('member');
  const add = useMutation({ mutationFn: addMember, onSuccess: () => setName('') });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate({ name: name.trim(), role });
  };
  return (
    <section aria-label="New member" className="flex flex-none flex-col gap-3 border-b border-line px-4 py-3">
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <label className="flex flex-col gap-[2px]">
          <span className="label">Member name</span>
          <input
            className="input w-[280px] max-w-full"
            required
            maxLength={100}
            placeholder="Ada Finch"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </label>
        <label className="flex flex-col gap-[2px]">
          <span className="label">Role</span>
          <select className="input" value={role} onChange={(event) => setRole(event.target.value as Role)}>
            <option value="member">Member: can read, upload, play and create keys</option>
            <option value="owner">Owner: can also change settings and members</option>
          </select>
        </label>
        <button type="submit" className="button primary" disabled={add.isPending}>
          Add member
        </button>
        <span role="alert" className="self-center text-bad empty:hidden">
          {add.error?.message}
        </span>
      </form>
      {add.data && (
        <div className="max-w-[840px]">
          <ShownOnce
            title={`Send this link to ${add.data.name}. It signs in one browser and expires after a day`}
            text={add.data.sign_in_url}
          />
        </div>
      )}
    </section>
  );
}
