import type { RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo, useRef, useState } from 'react';
import { headerQuery, isCurrent, outlineQuery } from '../data/rollout.ts';
import { UNKNOWN } from '../format/number.ts';
import { taskLabel } from '../format/task.ts';
import { Dialog } from '../frame/Dialog.tsx';
import { ErrorState, SkeletonRows } from '../frame/states.tsx';
import { type RolloutContext, RolloutProvider } from '../rollout/context.ts';
import { Transcript } from '../rollout/transcript/Transcript.tsx';
import type { TranscriptHandle } from '../rollout/transcript/transcript-handle.ts';
import { useReaderData } from '../rollout/useReaderData.ts';
import { useOpenRows } from '../rollout/useSelection.ts';
import { PlainText } from '../text/PlainText.tsx';

const NO_NOTES: ReadonlyMap<number, string> = new Map();
const stay = () => {};

/** The transcript of a reviewed rollout. Its head has no total reward and no notes, which would influence the reviewer. */
export function TranscriptPane({ id, name }: { id: string; name: string | null }) {
  const header = useQuery(headerQuery(id));
  const firstOutline = useQuery(outlineQuery(id, null)).data;
  const outdated = firstOutline !== undefined && header.data !== undefined && !isCurrent(firstOutline, header.data);
  const outline = useQuery(outlineQuery(id, outdated ? header.data : null));
  const error = header.error ?? outline.error;
  return (
    <section
      aria-label={name === null ? 'Rollout' : `${name} rollout`}
      className="flex min-h-0 min-w-0 flex-col border-r border-line last:border-r-0"
    >
      {header.data && outline.data ? (
        <Pane header={header.data} uploaded={outline.data} name={name} />
      ) : error ? (
        <ErrorState
          error={error}
          retry={() => {
            void header.refetch();
            void outline.refetch();
          }}
        />
      ) : (
        <SkeletonRows />
      )}
    </section>
  );
}

function Pane({ header, uploaded, name }: { header: RolloutHeader; uploaded: RolloutOutline; name: string | null }) {
  const { calls, solved, outline, items } = useReaderData(header, uploaded);
  const { openness, toggle } = useOpenRows();
  const [selected, select] = useState(-1);
  const [image, setImage] = useState<string | null>(null);
  const handle = useRef<TranscriptHandle>(null);
  const context = useMemo<RolloutContext>(
    () => ({
      id: header.id,
      calls: new Map((calls?.calls ?? []).map((call) => [call.index, call])),
      verified: calls?.verified ?? null,
      showImage: setImage,
      notes: NO_NOTES,
      solved,
    }),
    [header.id, calls, solved],
  );
  return (
    <RolloutProvider value={context}>
      <header className="flex h-[34px] min-w-0 flex-none items-center gap-3 border-b border-line px-4 whitespace-nowrap">
        {name !== null && <span className="strong">{name}</span>}
        <span className="truncate text-ink-2">
          <PlainText text={`${taskLabel(header)} · ${header.environment ?? UNKNOWN} · step ${header.step ?? UNKNOWN}`} />
        </span>
        <Link to="/rollout/$id" params={{ id: header.id }} search={{}} className="link ml-auto flex-none" target="_blank">
          Open
        </Link>
      </header>
      {items.length === 0 ? (
        <p className="p-4 text-ink-2">This rollout has no message.</p>
      ) : (
        <Transcript
          {...{ outline, items, selected, select, openness, toggle, handle }}
          id={header.id}
          decisive={-1}
          tail={false}
          setTail={stay}
          live={false}
          find=""
        />
      )}
      <Dialog title="Image" open={image !== null} onClose={() => setImage(null)} width={1100}>
        <img src={image ?? ''} alt="Image of the message, enlarged" className="mx-auto max-h-[76vh] max-w-full" />
      </Dialog>
    </RolloutProvider>
  );
}
