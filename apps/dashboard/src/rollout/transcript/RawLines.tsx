import type { RolloutMessageView } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { WINDOW_BYTES, windowQuery } from '../../data/rollout.ts';
import { formatBytes, formatCount } from '../../format/number.ts';
import { PlainText } from '../../text/PlainText.tsx';
import { useRollout } from '../context.ts';

/** Shows a very large text in windows of raw lines. Only the shown window is read from the server; nothing is parsed. */
export function RawLines({ message, bytes }: { message: RolloutMessageView; bytes: number }) {
  const { id } = useRollout();
  const [window, setWindow] = useState(0);
  const windows = Math.ceil(bytes / WINDOW_BYTES);
  const part = useQuery(windowQuery(id, message.index, message.eventId, window, bytes));
  const go = (to: number) => setWindow(Math.max(0, Math.min(windows - 1, to)));
  return (
    <div>
      <div className="flex flex-wrap items-center gap-2 pb-2 font-sans">
        <button type="button" className="button" disabled={window === 0} onClick={() => go(window - 1)} aria-label="Earlier part">
          ‹
        </button>
        <label className="flex items-center gap-2">
          <span className="label">Part</span>
          <input
            type="number"
            className="input num w-[76px]"
            min={1}
            max={windows}
            value={window + 1}
            onChange={(event) => go(Number(event.target.value) - 1)}
          />
        </label>
        <button type="button" className="button" disabled={window === windows - 1} onClick={() => go(window + 1)} aria-label="Later part">
          ›
        </button>
        <span className="label">
          of {formatCount(windows)} · from {formatBytes(window * WINDOW_BYTES)} of {formatBytes(bytes)} · raw, not parsed
        </span>
      </div>
      {part.error ? (
        <p className="font-sans text-bad">This part could not be loaded: {part.error.message}</p>
      ) : (
        <div
          className={`mono max-h-[420px] overflow-auto whitespace-pre-wrap break-words border-l-2 border-line pl-2 ${part.isPlaceholderData ? 'opacity-60' : ''}`}
          tabIndex={0}
          role="region"
          aria-label={`Raw lines, part ${window + 1} of ${windows}`}
        >
          <PlainText text={part.data ?? ''} />
        </div>
      )}
    </div>
  );
}
