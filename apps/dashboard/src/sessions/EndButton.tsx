import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { endSession } from '../data/sessions.ts';
import { shortId } from './names.ts';

/** Ends a session after a second click. `button`: a button of the top bar instead of a link. */
export function EndButton({ sid, button = false }: { sid: string; button?: boolean }) {
  const client = useQueryClient();
  const [confirming, setConfirming] = useState(false);
  const confirmButton = useRef<HTMLButtonElement>(null);
  const end = useMutation({ mutationFn: () => endSession(client, sid) });
  useEffect(() => {
    if (confirming) confirmButton.current?.focus();
  }, [confirming]);
  if (end.error) return <span className="text-bad">{end.error.message}</span>;
  if (!confirming)
    return (
      <button
        type="button"
        className={button ? 'button' : 'link'}
        aria-label={`End session ${shortId(sid)}`}
        onClick={() => setConfirming(true)}
      >
        {button ? 'End session' : 'End'}
      </button>
    );
  return (
    <span className="inline-flex items-center gap-3 whitespace-nowrap">
      <button
        ref={confirmButton}
        type="button"
        className={button ? 'button text-bad' : 'text-bad strong hover:underline'}
        title="Ends the episode and releases the slot. The calls stay in the ledger."
        disabled={end.isPending}
        onClick={() => end.mutate()}
      >
        End {shortId(sid)} now
      </button>
      <button type="button" className={button ? 'button' : 'link'} onClick={() => setConfirming(false)}>
        Cancel
      </button>
    </span>
  );
}
