import type { RolloutOutline } from '@palestra/protocol';
import { useEffect } from 'react';
import { useTranscriptPages } from '../../data/transcript-pages.ts';
import type { Openness } from '../context.ts';
import { formulasSettled } from '../../text/formula-loader.ts';
import { Row } from './Row.tsx';
import { rowData, rowKey } from './rows.ts';
import type { TranscriptItem } from '../transcript.ts';

const doNothing = () => undefined;

/** All rows at once, for printing: reasoning open, long results cut. Calls `onReady` when every text is loaded. */
export function PrintedTranscript({
  id,
  outline,
  items,
  decisive,
  onReady,
}: {
  id: string;
  outline: RolloutOutline;
  items: readonly TranscriptItem[];
  decisive: number;
  onReady: () => void;
}) {
  const messageAt = useTranscriptPages(id, outline, 0, outline.total - 1);
  const ready = outline.index.every((_, at) => messageAt(at) !== undefined);
  useEffect(() => {
    if (ready) void formulasSettled().then(onReady);
  }, [ready, onReady]);
  const openness = (item: TranscriptItem): Openness => (item.kind === 'message' ? 'printed' : 'folded');
  return (
    <div role="feed" aria-label="Transcript" className="min-h-0 max-w-[1040px] overflow-auto print:overflow-visible">
      {items.map((item, row) => {
        const { call, result, data } = rowData(outline, item);
        return (
          <article key={rowKey(item)} aria-posinset={row + 1} aria-setsize={items.length} className="break-inside-avoid">
            <Row
              item={item}
              {...data}
              decisive={row === decisive}
              message={call === null ? undefined : messageAt(call)}
              result={result === null ? undefined : messageAt(result)}
              open={openness(item)}
              toggle={doNothing}
            />
          </article>
        );
      })}
    </div>
  );
}
