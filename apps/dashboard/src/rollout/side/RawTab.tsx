import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { messagesAtQuery, rawUrl } from '../../data/rollout.ts';
import { formatBytes } from '../../format/number.ts';
import { CopyButton } from '../../frame/CopyButton.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import type { PanelProps } from './panel-props.ts';
import { Section } from './parts.tsx';

const PREVIEW_CHARACTERS = 4_096;
const MAX_CHARACTERS = 200_000;

function JsonSection({ title, value }: { title: string; value: unknown }) {
  const [open, setOpen] = useState(false);
  const text = JSON.stringify(value, null, 2);
  const shown = text.slice(0, open ? MAX_CHARACTERS : PREVIEW_CHARACTERS);
  return (
    <Section title={title}>
      <div className="mono whitespace-pre-wrap break-words">
        <PlainText text={shown} />
      </div>
      <div className="mt-2 flex items-center gap-3">
        <CopyButton text={text} />
        {text.length > PREVIEW_CHARACTERS && (
          <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'Show less' : `Show all (${formatBytes(text.length)})`}
          </button>
        )}
      </div>
    </Section>
  );
}

/** The events as they were sent: the rollout event, and the messages of the selected row. */
export function RawTab({ header, message, outline, items }: PanelProps) {
  const item = message === null ? undefined : items.find(({ anchor }) => anchor === message);
  const result = item?.kind === 'call' && item.result !== null ? outline.index[item.result] : undefined;
  const call = useQuery({ ...messagesAtQuery(header.id, message ?? 0, 1), enabled: message !== null && item?.kind !== 'gap' });
  const resultMessage = useQuery({ ...messagesAtQuery(header.id, result ?? 0, 1), enabled: result !== undefined && result !== message });
  const events = [...(call.data ?? []), ...(result === undefined || result === message ? [] : (resultMessage.data ?? []))];
  const { neighbours: _, run, metadata, task_spec, run_info, rollout_info, ...rest } = header;
  return (
    <>
      {message === null ? (
        <Section>
          <p className="text-[12px] text-ink-3">Choose a message to see its events.</p>
        </Section>
      ) : (
        events.map((event) => <JsonSection key={event.eventId} title={`Message ${event.index}`} value={event} />)
      )}
      <JsonSection title="Rollout event" value={{ run: run.name, metadata, task_spec, run_info, rollout_info }} />
      <JsonSection title="Normalised fields" value={rest} />
      <Section>
        <a className="link" href={rawUrl(header.id)} download={`rollout-${header.id}.json`}>
          Download rollout ({formatBytes(header.bytes)})
        </a>
      </Section>
    </>
  );
}
