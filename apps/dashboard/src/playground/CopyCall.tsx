import { useQueryClient } from '@tanstack/react-query';
import type { SessionCallView, SessionView } from '@palestra/protocol';
import { wholeCallQuery } from '../data/sessions.ts';
import { CopyLink } from '../frame/CopyLink.tsx';
import { curlOf, jsonlOf, pythonOf } from './call-snippets.ts';

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
