import { useQueryClient } from '@tanstack/react-query';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { useEffect, useState } from 'react';
import { wholeCallQuery } from '../data/sessions.ts';
import { curlOf, jsonlOf, pythonOf } from './call-snippets.ts';

/** A button that copies a text, which can be loaded first. */
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
      // A page without HTTPS has no clipboard.
      setState('failed');
    }
  };
  return (
    <button type="button" className="link" title={name} aria-label={name} onClick={() => void copy()}>
      {state === 'copied' ? 'Copied' : state === 'failed' ? 'Copying is not allowed' : label}
    </button>
  );
}

/** Copies one call as a JSON line, a command or a program. */
export function CopyCall({ session, call, position }: { session: SessionView; call: SessionCallView; position: number }) {
  const client = useQueryClient();
  const render = (snippetOf: (whole: SessionCallView) => string) => async () =>
    snippetOf(call.truncated ? await client.fetchQuery(wholeCallQuery(session.sid, call)) : call);
  const origin = { url: location.origin, session };
  return (
    <span className="flex gap-x-2 text-ink-3">
      Copy as
      <CopyLink label="JSON" name={`Copy call ${position} as JSON`} text={render((whole) => jsonlOf(whole, position))} />
      <CopyLink label="curl" name={`Copy call ${position} as curl`} text={render((whole) => curlOf(origin, whole))} />
      <CopyLink label="Python" name={`Copy call ${position} as Python`} text={render((whole) => pythonOf(origin, whole))} />
    </span>
  );
}
