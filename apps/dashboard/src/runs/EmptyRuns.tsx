import { useQuery } from '@tanstack/react-query';
import { Tabs } from 'radix-ui';
import { apiKeysQuery } from '../data/queries.ts';
import { CopyButton } from '../frame/CopyButton.tsx';
import { snippets } from './snippets.ts';

function Snippet({ title, text }: { title: string; text: string }) {
  return (
    <section className="min-w-0">
      <div className="mb-1 flex items-center justify-between">
        <h3 className="strong">{title}</h3>
        <CopyButton text={text} />
      </div>
      <pre className="code-block" tabIndex={0}>
        {text}
      </pre>
    </section>
  );
}

/** Shown to an organisation without runs: how to upload from each trainer, with the address and key of the reader. */
export function EmptyRuns() {
  const apiKeys = useQuery(apiKeysQuery);
  const prefix = apiKeys.data?.keys.find((key) => key.revoked_at === null)?.prefix;
  const origin = location.origin;
  const key = prefix ? `${prefix}…` : '…';
  const lines = [
    `export OPENREWARD_URL=${origin}`,
    `export OPENREWARD_API_URL=${origin}`,
    `export OPENREWARD_SESSION_URL=${origin}`,
    `export OPENREWARD_API_KEY=${key}`,
  ].join('\n');
  return (
    <div className="mx-auto flex max-w-[820px] flex-col gap-5 px-4 py-8">
      <div>
        <h2 className="text-[16px] leading-[22px] strong">No runs yet</h2>
        <p className="text-ink-2">A run appears when a trainer uploads its first rollout. You need no other setup.</p>
      </div>
      <Snippet title="1. Point the client at this server" text={lines} />
      <p className="label -mt-3">
        {prefix ? `Your key begins with ${prefix}. ` : ''}Palestra shows a key only once, when you create it. You can create another one
        under API keys.
      </p>
      <Trainers />
    </div>
  );
}

const tab =
  'h-[28px] border-b-2 border-transparent px-[9px] text-ink-2 hover:text-ink-1 data-[state=active]:border-accent data-[state=active]:font-[550] data-[state=active]:text-ink-1';

function Trainers() {
  return (
    <Tabs.Root defaultValue={snippets[0]!.id} className="min-w-0">
      <h3 className="strong mb-1">2. Upload from your trainer</h3>
      <Tabs.List aria-label="Trainer" className="flex flex-wrap border-b border-line">
        {snippets.map(({ id, name }) => (
          <Tabs.Trigger key={id} value={id} className={tab}>
            {name}
          </Tabs.Trigger>
        ))}
      </Tabs.List>
      {snippets.map(({ id, about, text }) => (
        <Tabs.Content key={id} value={id} className="pt-2">
          <div className="mb-1 flex items-center justify-between gap-3">
            <p className="text-ink-2">{about}</p>
            <CopyButton text={text} />
          </div>
          <pre className="code-block" tabIndex={0}>
            {text}
          </pre>
        </Tabs.Content>
      ))}
    </Tabs.Root>
  );
}
