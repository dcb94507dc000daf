import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { endSession } from '../data/sessions.ts';
import { shortId } from './names.ts';

/** Ends a session after a second press; `button`: drawn as one, for the top bar. */
export function EndButton({ sid, button = false }: { sid: string; button?: boolean }) {
  const client = useQueryClient();
  const [asked, setAsked] = useState(false);
  const sure = useRef<HTMLButtonElement>(null);
  const end = useMutation({ mutationFn: () => endSession(client, sid) });
  useEffect(() => {
    if (asked) sure.current?.focus();
  }, [asked]);
  if (end.error) return <span className="text-bad">{end.error.message}</span>;
  if (!asked)
    return (
      <button
        type="button"
        className={button ? 'button' : 'link'}
        aria-label={`End session ${shortId(sid)}`}
        onClick={() => setAsked(true)}
      >
        {button ? 'End session' : 'End'}
      </button>
    );
  return (
    <span className="flex items-center gap-3 whitespace-nowrap">
      <button
        ref={sure}
        type="button"
        className={button ? 'button text-bad' : 'text-bad strong hover:underline'}
        title="Its episode and its slot are gone then; its calls stay on record."
        disabled={end.isPending}
        onClick={() => end.mutate()}
      >
        End {shortId(sid)} now
      </button>
      <button type="button" className={button ? 'button' : 'link'} onClick={() => setAsked(false)}>
        Keep
      </button>
    </span>
  );
}
