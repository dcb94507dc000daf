import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { GroupMember } from '../data/groups.ts';
import { messagesAtQuery } from '../data/rollout.ts';
import { formatBytes, formatReward } from '../format/number.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { SkeletonRows } from '../frame/states.tsx';
import { TextDiff } from '../rollout/TextDiff.tsx';
import { PlainText } from '../text/PlainText.tsx';
import type { Cell } from './align.ts';

export interface Chosen {
  member: GroupMember;
  cell: Cell;
  /** The action of the best sample in the same row. */
  best: { id: string; cell: Cell } | null;
}

/** The whole text of an action, and its difference to the action of the best sample in the same row. */
export function CellDialog({ chosen, close }: { chosen: Chosen | null; close: () => void }) {
  const title = chosen ? `Sample ${chosen.member.sample ?? '–'}: ${chosen.cell.action.tool ?? 'answer'} #${chosen.cell.action.index}` : '';
  return (
    <Dialog title={title} open={chosen !== null} onClose={close} width={760}>
      {chosen && <Text chosen={chosen} />}
    </Dialog>
  );
}

function Text({ chosen }: { chosen: Chosen }) {
  const { member, cell, best } = chosen;
  const messages = useQuery(messagesAtQuery(member.id, cell.action.index, 2, member.num_messages));
  const compared = best && !cell.same && best.id !== member.id ? best : null;
  const bestMessages = useQuery({
    ...messagesAtQuery(compared?.id ?? '', compared?.cell.action.index ?? 0, 2),
    enabled: compared !== null,
  });
  if (!messages.data) return <SkeletonRows count={4} />;
  const [call, next] = messages.data;
  const result = next?.type === 'tool_result' ? next : undefined;
  return (
    <div className="grid gap-3">
      {[call, result].map(
        (message) =>
          message && (
            <section key={message.eventId}>
              <h3 className="label mb-1 first-letter:uppercase">
                {message.type.replace('_', ' ')} #{message.index}
                {message.reward !== null && `, reward ${formatReward(message.reward)}`}
                {message.body_bytes !== undefined && `, first part of ${formatBytes(message.body_bytes)}`}
              </h3>
              <div
                className="mono max-h-[32vh] overflow-auto whitespace-pre-wrap break-words rounded-[4px] border border-line p-2"
                tabIndex={0}
              >
                <PlainText text={message.content ?? ''} />
              </div>
            </section>
          ),
      )}
      {compared && bestMessages.data && (
        <section>
          <h3 className="label mb-1">
            <del>This sample</del> <ins className="no-underline">Best sample: {compared.cell.action.tool ?? 'answer'}</ins>
          </h3>
          <TextDiff a={call?.content ?? ''} b={bestMessages.data[0]?.content ?? ''} />
        </section>
      )}
      <p>
        <Link to="/rollout/$id" params={{ id: member.id }} search={{}} hash={`m-${cell.action.index}`} className="link">
          Open in the rollout
        </Link>
      </p>
    </div>
  );
}
