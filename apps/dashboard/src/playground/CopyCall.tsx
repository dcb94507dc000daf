import { useQueryClient } from '@tanstack/react-query';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { useEffect, useState } from 'react';
import { wholeCallQuery } from '../data/sessions.ts';
import { curlOf, jsonlOf, pythonOf } from './call-snippets.ts';

/** A word that copies a text, which may have to be read first. */
export function CopyLink({ label, name, text }: { label: string; name?: string; text: () => Promise<string> }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = setTimeout(() => setState('idle'), 1_500);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await text());
      setState('copied');
    } catch {
      // Pages of plain HTTP have no clipboard.
      setState('failed');
    }
  };
  return (
    <button type="button" className="link" title={name} aria-label={name} onClick={() => void copy()}>
      {state === 'copied' ? 'copied' : state === 'failed' ? 'the browser refuses' : label}
    </button>
  );
}

/** One call as a line of JSON, as a command, as a program. */
export function CopyCall({ session, call, position }: { session: SessionView; call: SessionCallView; position: number }) {
  const client = useQueryClient();
  const as = (write: (whole: SessionCallView) => string) => async () =>
    write(call.truncated ? await client.fetchQuery(wholeCallQuery(session.sid, call)) : call);
  const origin = { url: location.origin, session };
  return (
    <span className="flex gap-x-2 text-ink-3">
      copy
      <CopyLink label="JSON" name={`Copy call ${position} as JSON`} text={as((whole) => jsonlOf(whole, position))} />
      <CopyLink label="curl" name={`Copy call ${position} as curl`} text={as((whole) => curlOf(origin, whole))} />
      <CopyLink label="Python" name={`Copy call ${position} as Python`} text={as((whole) => pythonOf(origin, whole))} />
    </span>
  );
}
