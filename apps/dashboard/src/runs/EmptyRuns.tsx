import { useQuery } from '@tanstack/react-query';
import { apiKeysQuery } from '../data/queries.ts';
import { CopyButton } from '../frame/CopyButton.tsx';

const episode = `from openreward import OpenReward, ToolCall, ToolResult, UserMessage

client = OpenReward()
environment = client.environments.get("palestra/echo")
rollout = client.rollout.create(run_name="first-run", rollout_name="echo-0",
                                environment="palestra/echo", split="train")

with environment.session(split="train", index=0) as session:
    rollout.log(UserMessage(session.get_prompt()[0].text))
    rollout.log(ToolCall(name="echo", content='{"text": "hello"}', call_id="1"))
    output = session.call_tool("echo", {"text": "hello"})
    rollout.log(ToolResult(output.blocks[0].text, call_id="1"),
                reward=output.reward, is_finished=True)

client.rollout.close()`;

function Snippet({ title, text }: { title: string; text: string }) {
  return (
    <section className="min-w-0">
      <div className="mb-1 flex items-center justify-between">
        <h3 className="strong">{title}</h3>
        <CopyButton text={text} />
      </div>
      <pre className="code-block">{text}</pre>
    </section>
  );
}

/** What a new organisation sees: the two things that fill this page, with the reader's own address and key. */
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
    <div className="mx-auto flex max-w-[760px] flex-col gap-5 px-4 py-10">
      <div>
        <h2 className="text-[16px] leading-[22px] strong">No run yet</h2>
        <p className="text-ink-2">
          A run appears here with the first rollout that a trainer uploads under its name. Nothing else needs to be set up.
        </p>
      </div>
      <Snippet title="1. Point the client at this server" text={lines} />
      <p className="label -mt-3">
        {prefix ? `Your key begins with ${prefix}. ` : ''}Keys are shown once when they are made; make another one under API keys.
      </p>
      <Snippet title="2. Upload a rollout with the openreward package" text={episode} />
    </div>
  );
}
