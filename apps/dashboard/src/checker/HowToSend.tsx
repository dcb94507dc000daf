import { useState } from 'react';
import { CopyButton } from '../frame/CopyButton.tsx';
import { snippets } from '../runs/snippets.ts';

/** The configuration with which a trainer uploads to this server. `trainer`: id of the trainer of the example. */
export function HowToSend({ trainer }: { trainer: string | undefined }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const selected = chosen ?? trainer;
  const snippet = snippets.find(({ id }) => id === selected) ?? snippets[0]!;
  return (
    <section aria-label="How to send it" className="px-4 py-3">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 className="strong">How to send it</h2>
        <select className="input" aria-label="Trainer" value={snippet.id} onChange={(event) => setChosen(event.target.value)}>
          {snippets.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
        <span className="flex-1" />
        <CopyButton text={snippet.text} />
      </div>
      <p className="mb-2 max-w-[84ch] text-ink-2">{snippet.about}</p>
      <pre className="code-block" tabIndex={0} aria-label={`Lines for ${snippet.name}`}>
        {snippet.text}
      </pre>
    </section>
  );
}
