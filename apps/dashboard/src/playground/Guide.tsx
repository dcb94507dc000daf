import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { JsonObject } from '@palestra/protocol';
import { useId, useMemo, useState } from 'react';
import { discoveryQuery, environmentQuery } from '../data/queries.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { Dialog } from '../frame/Dialog.tsx';
import { Markdown } from '../text/Markdown.tsx';
import { type Snippet, snippetsOf } from './quickstart.ts';

interface GuideProps {
  environment: { owner: string; name: string };
  split: string | undefined;
  index: number;
}

const tabs = ['Quick start', 'README'] as const;
const chip =
  'h-[24px] rounded-[4px] px-[8px] text-ink-2 hover:bg-paper-2 hover:text-ink-1 aria-pressed:bg-paper-2 aria-pressed:text-ink-1 aria-pressed:font-[550]';

/** Quick start for programs, and the README of the environment. */
export function Guide(props: GuideProps) {
  const [tab, setTab] = useState<(typeof tabs)[number]>('Quick start');
  return (
    <div className="min-w-0">
      <div role="group" aria-label="Show" className="flex gap-1 border-b border-line px-3 py-[5px]">
        {tabs.map((name) => (
          <button key={name} type="button" className={chip} aria-pressed={name === tab} onClick={() => setTab(name)}>
            {name}
          </button>
        ))}
      </div>
      <div className="p-3">{tab === 'README' ? <Readme environment={props.environment} /> : <QuickStart {...props} />}</div>
    </div>
  );
}

function Readme({ environment: { owner, name } }: Pick<GuideProps, 'environment'>) {
  const details = useQuery(environmentQuery(owner, name));
  if (details.error) return <p className="text-bad">{details.error.message}</p>;
  if (!details.data) return null;
  const { readme_content: readme, description } = details.data;
  if (readme) return <Markdown source={readme} className="max-w-[84ch]" />;
  return <p className="text-ink-2">{description || 'This environment has no description and no README.'}</p>;
}

/** Placeholder until the reader enters a key. */
const NO_KEY = 'or_your_key';
const MASK = 'or_••••••••';

function QuickStart({ environment, split, index }: GuideProps) {
  const discovery = useQuery(discoveryQuery(environment.owner, environment.name));
  const [client, setClient] = useState<Snippet['id']>('openreward');
  const [key, setKey] = useState('');
  const [shown, setShown] = useState(false);
  const variants = discovery.data?.variants;
  const variant = variants?.find((one) => one.is_default) ?? variants?.[0];
  const snippets = useMemo(() => {
    const start = { ...environment, origin: location.origin, split: split ?? variant?.splits[0]?.name ?? 'train', index };
    const withKey = (secret: string) => snippetsOf({ ...start, key: secret, tools: variant?.tools.tools ?? [] });
    return { real: withKey(key.trim() || NO_KEY), masked: withKey(key.trim() === '' ? NO_KEY : MASK) };
  }, [environment, split, index, key, variant]);
  const real = snippets.real.find(({ id }) => id === client) ?? snippets.real[0]!;
  const text = (shown ? real : snippets.masked.find(({ id }) => id === real.id)!).text.replaceAll(encodeURIComponent(MASK), MASK);
  return (
    <div className="flex min-w-0 flex-col gap-3">
      <KeyField value={key} onChange={setKey} shown={shown} onShown={setShown} />
      <div role="group" aria-label="Client" className="flex flex-wrap gap-1">
        {snippets.real.map(({ id, title }) => (
          <button key={id} type="button" className={chip} aria-pressed={id === real.id} onClick={() => setClient(id)}>
            {title}
          </button>
        ))}
      </div>
      <div className="min-w-0">
        <div className="mb-1 flex items-end gap-3">
          <p className="flex-1 text-[12px] leading-[16px] text-ink-2">{real.about}</p>
          <CopyButton text={real.text} />
        </div>
        <pre className="code-block max-h-[60dvh] overflow-auto" tabIndex={0} aria-label={`Quick start, ${real.title}`}>
          {text}
        </pre>
      </div>
    </div>
  );
}

interface KeyProps {
  value: string;
  onChange: (key: string) => void;
  shown: boolean;
  onShown: (shown: boolean) => void;
}

/** The API key for the snippets. It stays in the page: the server stores only hashes of keys. */
function KeyField({ value, onChange, shown, onShown }: KeyProps) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="label">
        API key for these snippets. It stays on this page.{' '}
        <Link to="/keys" className="link">
          Create a key
        </Link>
      </label>
      <div className="mt-[2px] flex gap-2">
        <input
          id={id}
          className="input mono min-w-0 flex-1"
          type={shown ? 'text' : 'password'}
          autoComplete="off"
          spellCheck={false}
          placeholder={NO_KEY}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
        <button type="button" className="button" aria-pressed={shown} onClick={() => onShown(!shown)}>
          {shown ? 'Hide key' : 'Show key'}
        </button>
      </div>
    </div>
  );
}

/** Opens the guide for the task of a session. */
export function GuideButton({ environment, task }: { environment: GuideProps['environment']; task: JsonObject | null }) {
  const [open, setOpen] = useState(false);
  const byIndex = task?.['kind'] === 'index';
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Quick start
      </button>
      <Dialog title={`${environment.owner}/${environment.name}`} open={open} onClose={() => setOpen(false)} width={720}>
        <Guide environment={environment} split={byIndex ? String(task['split']) : undefined} index={byIndex ? Number(task['index']) : 0} />
      </Dialog>
    </>
  );
}
