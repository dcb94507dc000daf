import type { Member, Role } from '@palestra/protocol';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { changeMember, membersQuery, organisationQuery, removeMember, signInLink } from '../data/accounts.ts';
import { queryClient } from '../data/client.ts';
import { meQuery } from '../data/queries.ts';
import { formatCount } from '../format/number.ts';
import { Age } from '../frame/Age.tsx';
import { ConfirmDialog } from '../frame/ConfirmDialog.tsx';
import { Loaded } from '../frame/Loaded.tsx';
import { ShownOnce } from '../frame/ShownOnce.tsx';
import { type Column, DataTable } from '../table/DataTable.tsx';
import { AddMember } from './AddMember.tsx';
import { OwnersOnly } from './parts.tsx';

const keyNoun = (count: number) => (count === 1 ? 'API key' : 'API keys');

interface MemberActions {
  /** User id of the reader. */
  me: string | undefined;
  owner: boolean;
  change: (member: Member, role: Role) => void;
  link: (member: Member) => void;
  remove: (member: Member) => void;
}

const roleNames = { owner: 'Owner', member: 'Member' } as const;

const columnsFor = ({ me, owner, change, link, remove }: MemberActions): readonly Column<Member>[] => [
  {
    id: 'name',
    head: 'Name',
    track: 'minmax(160px,2fr)',
    phone: 'minmax(0,1fr)',
    title: ({ name }) => name,
    cell: ({ id, name }) => (
      <>
        <span className="strong">{name}</span> {id === me && <span className="chip">You</span>}
      </>
    ),
  },
  {
    id: 'role',
    head: 'Role',
    track: '120px',
    phone: '98px',
    explain: 'Owners can change settings and members, and create organisations',
    cell: (member) =>
      owner ? (
        <select
          className="rounded-[3px] border border-line-strong bg-paper-0 px-1"
          aria-label={`Role of ${member.name}`}
          value={member.role}
          onChange={(event) => change(member, event.target.value as Role)}
        >
          <option value="owner">Owner</option>
          <option value="member">Member</option>
        </select>
      ) : (
        roleNames[member.role]
      ),
  },
  { id: 'keys', head: 'Keys', track: '80px', align: 'right', explain: 'Valid API keys', cell: ({ keys }) => formatCount(keys) },
  { id: 'since', head: 'Since', track: '110px', align: 'right', cell: (member) => <Age iso={member.created_at} /> },
  {
    id: 'actions',
    head: <span className="sr-only">Actions</span>,
    track: 'minmax(240px,1fr)',
    phone: '168px',
    align: 'right',
    cell: (member) => (
      <span className="inline-grid grid-cols-[96px_72px] justify-items-end max-[560px]:grid-cols-[auto_auto] max-[560px]:gap-x-2">
        {(owner || member.id === me) && (
          <button type="button" className="link" onClick={() => link(member)} aria-label={`Sign-in link for ${member.name}`}>
            Sign-in link
          </button>
        )}
        {(owner || member.id === me) && (
          <button
            type="button"
            className="link"
            onClick={() => remove(member)}
            aria-label={member.id === me ? 'Leave the organisation' : `Remove ${member.name}`}
          >
            {member.id === me ? 'Leave…' : 'Remove…'}
          </button>
        )}
      </span>
    ),
  },
];

/** Members of the organisation, their roles and their sign-in links. */
export function MembersTab() {
  const members = useQuery(membersQuery);
  const owner = useQuery(organisationQuery).data?.role === 'owner';
  const me = useQuery(meQuery).data?.user.id;
  const [removing, setRemoving] = useState<Member | null>(null);
  const change = useMutation({ mutationFn: ({ id, role }: { id: string; role: Role }) => changeMember(id, role) });
  const link = useMutation({ mutationFn: async (member: Member) => ({ member, url: await signInLink(member.id) }) });
  const [setRole, makeLink] = [change.mutate, link.mutate];
  const columns = useMemo(
    () => columnsFor({ me, owner, change: ({ id }, role) => setRole({ id, role }), link: makeLink, remove: setRemoving }),
    [me, owner, setRole, makeLink],
  );
  const refusal = change.error ?? link.error;
  return (
    <Loaded query={members}>
      {(rows) => (
        <div className="flex h-full min-h-0 flex-col">
          {owner ? <AddMember /> : <OwnersOnly />}
          {refusal && (
            <p role="alert" className="flex-none border-b border-line px-4 py-2 text-bad">
              {refusal.message}
            </p>
          )}
          {link.data && (
            <div className="flex-none border-b border-line px-4 py-3">
              <ShownOnce
                title={`New sign-in link for ${link.data.member.name}. It signs in one browser and expires after a day`}
                text={link.data.url}
              />
            </div>
          )}
          <div className="min-h-[160px] flex-1">
            <DataTable label="Members" columns={columns} rows={rows} rowKey={({ id }) => id} minWidth={760} />
          </div>
          {removing && <RemoveDialog member={removing} isMe={removing.id === me} onClose={() => setRemoving(null)} />}
        </div>
      )}
    </Loaded>
  );
}

function RemoveDialog({ member, isMe, onClose }: { member: Member; isMe: boolean; onClose: () => void }) {
  const leave = async () => {
    await removeMember(member.id);
    // This also ends the reader's browser session. After the reset the frame shows the sign-in form.
    if (isMe) await queryClient.resetQueries();
  };
  const whose = isMe ? 'your' : 'their';
  return (
    <ConfirmDialog
      title={isMe ? 'Leave the organisation?' : `Remove ${member.name}?`}
      action={isMe ? 'Leave now' : `Remove ${member.name} now`}
      onConfirm={leave}
      onClose={onClose}
    >
      <p>This immediately removes:</p>
      <ul className="list-disc pl-5">
        <li>
          {member.keys === 0
            ? `${whose} right to create API keys here`
            : `${formatCount(member.keys)} ${keyNoun(member.keys)}: trainers that use ${member.keys === 1 ? 'it' : 'them'} are rejected`}
        </li>
        <li>the browsers that {isMe ? 'you are' : `${member.name} is`} signed in with, and unused sign-in links</li>
      </ul>
      <p className="text-ink-2">
        {isMe ? 'Your' : 'Their'} uploads and shared links are kept. You can revoke the links under Shared links.
      </p>
    </ConfirmDialog>
  );
}
