import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { messagesAtQuery, rawUrl } from '../../data/rollout.ts';
import { formatBytes } from '../../format/number.ts';
import { CopyButton } from '../../frame/CopyButton.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import { Section } from './parts.tsx';
import type { SideProps } from './SidePanel.tsx';

const GATE_CHARACTERS = 4_096;
const MOST_CHARACTERS = 200_000;

function Json({ title, value }: { title: string; value: unknown }) {
  const [open, setOpen] = useState(false);
  const text = JSON.stringify(value, null, 2);
  const shown = text.slice(0, open ? MOST_CHARACTERS : GATE_CHARACTERS);
  return (
    <Section title={title}>
      <div className="mono whitespace-pre-wrap break-words">
        <PlainText text={shown} />
      </div>
      <div className="mt-2 flex items-center gap-3">
        <CopyButton text={text} />
        {text.length > GATE_CHARACTERS && (
          <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? 'show less' : `show all (${formatBytes(text.length)})`}
          </button>
        )}
      </div>
    </Section>
  );
}

/** The events as they were sent: that of the rollout, and the messages of the selected index. */
export function RawTab({ header, message, outline, items }: SideProps) {
  const item = message === null ? undefined : items.find(({ anchor }) => anchor === message);
  const result = item?.kind === 'call' && item.result !== null ? outline.index[item.result] : undefined;
  const call = useQuery({ ...messagesAtQuery(header.id, message ?? 0, 1), enabled: message !== null && item?.kind !== 'gap' });
  const answer = useQuery({ ...messagesAtQuery(header.id, result ?? 0, 1), enabled: result !== undefined && result !== message });
  const events = [...(call.data ?? []), ...(result === undefined || result === message ? [] : (answer.data ?? []))];
  const { neighbours: _, run, metadata, task_spec, run_info, rollout_info, ...rest } = header;
  return (
    <>
      {message === null ? (
        <Section>
          <p className="text-[12px] text-ink-3">Choose a message to see its events.</p>
        </Section>
      ) : (
        events.map((event) => <Json key={event.eventId} title={`Message ${event.index}`} value={event} />)
      )}
      <Json title="Rollout event" value={{ run: run.name, metadata, task_spec, run_info, rollout_info }} />
      <Json title="What was read from it" value={rest} />
      <Section>
        <a className="link" href={rawUrl(header.id)} download={`rollout-${header.id}.json`}>
          Download everything ({formatBytes(header.bytes)})
        </a>
      </Section>
    </>
  );
}
