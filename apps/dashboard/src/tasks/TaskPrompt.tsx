import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { headerQuery, messagesAtQuery } from '../data/rollout.ts';
import { JsonTree } from '../text/JsonTree.tsx';
import { Markdown } from '../text/Markdown.tsx';

/** Messages that are read for the prompt: system and user messages before the first of the model. */
const HEAD = 6;
const ROLES: Record<string, string> = { system_message: 'System', user_message: 'User' };

/** The prompt of a task: the messages before the first action of one of its rollouts, else its task specification. */
export function TaskPrompt({ rollout }: { rollout: string | undefined }) {
  const messages = useQuery({ ...messagesAtQuery(rollout ?? '', 0, HEAD), enabled: rollout !== undefined });
  const own = messages.data?.findIndex(({ type }) => !(type in ROLES)) ?? -1;
  const prompt = messages.data?.slice(0, own < 0 ? undefined : own).filter(({ content }) => content !== null && content !== '') ?? [];
  const spec = useQuery({ ...headerQuery(rollout ?? ''), enabled: rollout !== undefined }).data?.task_spec;
  const hasSpec = spec !== null && spec !== undefined;
  return (
    <section aria-label="Prompt" className="flex min-h-0 min-w-0 flex-1 flex-col border-b border-line min-[1100px]:border-r">
      <div className="flex h-[30px] flex-none items-center gap-2 px-4">
        <h2 className="strong">Prompt</h2>
        {rollout !== undefined && (
          <Link to="/rollout/$id" params={{ id: rollout }} search={{}} className="label link ml-auto">
            Show the newest rollout
          </Link>
        )}
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto px-4 pb-3" tabIndex={0} role="region" aria-label="Text of the prompt">
        {prompt.map(({ index, type, content }) => (
          <div key={index} className="mb-2 max-w-[72ch]">
            <span className="label">{ROLES[type]}</span>
            <Markdown source={content!} />
          </div>
        ))}
        {prompt.length === 0 && messages.data && !hasSpec && (
          <p className="text-ink-3">
            The rollouts of this task begin with the model. Upload the system and user messages to see the prompt.
          </p>
        )}
        {hasSpec && (
          <div className="mb-2">
            <span className="label">Task specification</span>
            <JsonTree value={spec} />
          </div>
        )}
      </div>
    </section>
  );
}
