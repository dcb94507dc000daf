import { type Annotation, type NewAnnotation, type Verdict, VERDICTS } from '@palestra/protocol';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { addAnnotation, deleteAnnotation } from '../../data/annotations.ts';
import { Age } from '../../frame/Age.tsx';
import { PlainText } from '../../text/PlainText.tsx';
import { rowOfMessage } from '../transcript.ts';
import type { PanelProps } from './panel-props.ts';
import { Section } from './parts.tsx';

export const verdictMarks: Record<Verdict, readonly [mark: string, className: string]> = {
  good: ['●', 'text-good'],
  bad: ['○', 'text-bad'],
  exploit: ['◆', 'text-environment'],
};
const verdictNames: Record<Verdict, string> = { good: 'Good', bad: 'Bad', exploit: 'Exploit' };
const keysOf: Record<Verdict, string> = { good: 'g', bad: 'b', exploit: 'x' };

/** Labels of review queues have no mark. */
const marksOf = new Map<string, readonly [mark: string, className: string]>(Object.entries(verdictMarks));

/** What the fields accept. Without it a mistyped message would annotate the whole rollout. */
const INDEX = '\\s*\\d{1,9}\\s*';
const indexOf = (text: string): number | null => (/^\d{1,9}$/.test(text.trim()) ? Number(text) : null);

function AnnotationItem({ annotation, goTo }: { annotation: Annotation; goTo: (() => void) | null }) {
  const { verdict, score, tag, note, queue, from_index: from, to_index: until } = annotation;
  const remove = useMutation({ mutationFn: () => deleteAnnotation(annotation) });
  return (
    <li className="border-t border-line py-2 text-[12px] first:border-t-0">
      <div className="flex flex-wrap items-center gap-2">
        {verdict && (
          <span className={`chip ${marksOf.get(verdict)?.[1] ?? ''}`}>
            {marksOf.get(verdict)?.[0]} <PlainText text={verdict} />
          </span>
        )}
        {score !== null && <span className="chip">{score} of 5</span>}
        {tag && (
          <span className="chip">
            <PlainText text={tag} />
          </span>
        )}
        {from !== null && (
          <button type="button" className="link" onClick={goTo ?? undefined} disabled={goTo === null}>
            #{from}
            {until !== null && until !== from && `–${until}`}
          </button>
        )}
        <span className="flex-1" />
        {queue === null && (
          <button
            type="button"
            className="label hover:text-ink-1"
            disabled={remove.isPending}
            onClick={() => remove.mutate()}
            aria-label={`Delete the annotation of ${annotation.author}`}
          >
            Delete
          </button>
        )}
      </div>
      {note && (
        <p className="mt-1 whitespace-pre-wrap break-words">
          <PlainText text={note} />
        </p>
      )}
      <p className="label mt-1">
        {annotation.author}, <Age iso={annotation.created_at} />
        {queue && (
          <>
            , review “<PlainText text={queue.name} />”
          </>
        )}
      </p>
      {remove.error && <p className="text-bad">The annotation was not deleted: {remove.error.message}</p>}
    </li>
  );
}

/** Annotations of the rollout or of some of its messages: verdict, score, tag, note. Queries and exports have all of them. */
export function NotesTab({ header, message, outline, items, annotations, go, notify }: PanelProps) {
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [score, setScore] = useState<number | null>(null);
  const [tag, setTag] = useState('');
  const [note, setNote] = useState('');
  const [range, setRange] = useState<[from: string, to: string] | null>(null);
  const [from, to] = range ?? [message === null ? '' : String(message), ''];
  const add = useMutation({
    mutationFn: (body: NewAnnotation) => addAnnotation(body),
    onSuccess: () => {
      setVerdict(null);
      setScore(null);
      setTag('');
      setNote('');
      setRange(null);
      notify('Annotation saved');
    },
  });
  const empty = verdict === null && score === null && tag.trim() === '' && note.trim() === '';
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (empty) return;
    const fromIndex = indexOf(from);
    add.mutate({
      rollout: header.id,
      from_index: fromIndex,
      to_index: fromIndex === null ? null : indexOf(to),
      verdict,
      score,
      tag: tag.trim() || null,
      note: note.trim() || null,
    });
  };
  const pressedClasses = 'aria-pressed:border-accent aria-pressed:bg-accent-wash aria-pressed:text-ink-1';
  return (
    <>
      <Section title="Add annotation">
        <form onSubmit={submit} className="flex flex-col gap-2">
          <div className="flex gap-1" role="group" aria-label="Verdict">
            {VERDICTS.map((name) => (
              <button
                key={name}
                type="button"
                className={`button px-2 ${pressedClasses}`}
                aria-pressed={verdict === name}
                onClick={() => setVerdict(verdict === name ? null : name)}
              >
                <span aria-hidden="true" className={verdictMarks[name][1]}>
                  {verdictMarks[name][0]}
                </span>
                {verdictNames[name]} <kbd>{keysOf[name]}</kbd>
              </button>
            ))}
          </div>
          <div className="flex items-center gap-1" role="group" aria-label="Score">
            <span className="label w-[40px]">Score</span>
            {[1, 2, 3, 4, 5].map((value) => (
              <button
                key={value}
                type="button"
                className={`button w-[28px] justify-center px-0 ${pressedClasses}`}
                aria-pressed={score === value}
                onClick={() => setScore(score === value ? null : value)}
              >
                {value}
              </button>
            ))}
          </div>
          <label className="flex items-center gap-1">
            <span className="label w-[40px]">Tag</span>
            <input className="input min-w-0 flex-1" maxLength={100} value={tag} onChange={(event) => setTag(event.target.value)} />
          </label>
          <textarea
            className="input h-[72px] resize-y py-1"
            aria-label="Note"
            placeholder="Note"
            maxLength={10_000}
            value={note}
            onChange={(event) => setNote(event.target.value)}
          />
          <div className="flex items-center gap-1">
            <span className="label w-[64px]">Messages</span>
            <input
              className="input num w-[64px]"
              inputMode="numeric"
              aria-label="First message"
              pattern={INDEX}
              required={to !== ''}
              title="The number of a message"
              placeholder="All"
              value={from}
              onChange={(event) => setRange([event.target.value, to])}
            />
            <span className="label">to</span>
            <input
              className="input num w-[64px]"
              inputMode="numeric"
              aria-label="Last message"
              pattern={INDEX}
              title="The number of a message"
              placeholder={from}
              value={to}
              onChange={(event) => setRange([from, event.target.value])}
            />
            <span className="flex-1" />
            <button type="submit" className="button primary" disabled={empty || add.isPending}>
              Save
            </button>
          </div>
          <p role="alert" className="text-bad empty:hidden">
            {add.error ? `The annotation was not saved: ${add.error.message}` : ''}
          </p>
        </form>
      </Section>
      <Section title={annotations.length === 0 ? 'No annotations yet' : 'Annotations'}>
        {annotations.length === 0 && (
          <p className="text-[12px] text-ink-3">
            Keys: <kbd>g</kbd> good, <kbd>b</kbd> bad, <kbd>x</kbd> exploit, <kbd>1</kbd>–<kbd>5</kbd> score.
          </p>
        )}
        <ul>
          {annotations.map((annotation) => {
            const row = annotation.from_index === null ? -1 : rowOfMessage(outline, items, annotation.from_index);
            return <AnnotationItem key={annotation.id} annotation={annotation} goTo={row < 0 ? null : () => go(row)} />;
          })}
        </ul>
      </Section>
    </>
  );
}
