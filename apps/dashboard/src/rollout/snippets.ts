import type { RolloutMessageView, RolloutView } from '@palestra/protocol';

/** Bytes. Larger rollouts are only offered as a download. */
export const MAX_COPY_BYTES = 8_000_000;

interface OpenAiCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}
interface OpenAiMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string | null;
  reasoning_content?: string;
  tool_calls?: OpenAiCall[];
  tool_call_id?: string;
}

/** The rollout as OpenAI chat messages: reasoning, text and calls between two results are one assistant message. */
export function openAiMessages(messages: readonly RolloutMessageView[]): OpenAiMessage[] {
  const out: OpenAiMessage[] = [];
  let assistant: OpenAiMessage | null = null;
  const turn = (): OpenAiMessage => {
    if (assistant === null) out.push((assistant = { role: 'assistant', content: null }));
    return assistant;
  };
  messages.forEach(({ type, content, summary, name, callId, index }) => {
    const text = content ?? summary ?? '';
    if (type === 'reasoning') turn().reasoning_content = [turn().reasoning_content, text].filter(Boolean).join('\n\n');
    else if (type === 'assistant_message') turn().content = [turn().content, text].filter(Boolean).join('\n\n');
    else if (type === 'tool_call')
      (turn().tool_calls ??= []).push({ id: callId ?? `call_${index}`, type: 'function', function: { name: name ?? '', arguments: text } });
    else {
      assistant = null;
      if (type === 'tool_result') out.push({ role: 'tool', tool_call_id: callId ?? `call_${index}`, content: text });
      else out.push({ role: type === 'system_message' ? 'system' : 'user', content: text });
    }
  });
  return out;
}

export const curlOf = (origin: string, id: string): string => `curl -H "X-API-Key: $OPENREWARD_API_KEY" ${origin}/v1/rollouts/${id}`;

const pythonString = (value: string): string => JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

/** A Python test that repeats the rollout's calls in a new session and compares rewards. It fails when the environment has changed. */
export function replayTest(origin: string, rollout: RolloutView): string {
  const results = new Map(rollout.messages.filter(({ type }) => type === 'tool_result').map((message) => [message.callId, message]));
  const calls = rollout.messages
    .filter(({ type }) => type === 'tool_call')
    .map(({ name, content, callId }) => {
      const reward = results.get(callId)?.reward ?? null;
      return `    (${pythonString(name ?? '')}, ${pythonString(content ?? '{}')}, ${reward === null ? 'None' : reward}),`;
    });
  const session = `split=${pythonString(rollout.split ?? 'train')}, index=${rollout.task_index ?? 0}`;
  const taskHint = rollout.task_index === null ? '# The upload does not name its task: set index below.\n' : '';
  return `# Replays rollout ${rollout.id}; needs: pip install openreward pytest
${taskHint}# OPENREWARD_URL=${origin} OPENREWARD_API_URL=${origin} OPENREWARD_SESSION_URL=${origin} OPENREWARD_API_KEY=...
import json
import math

from openreward import OpenReward

CALLS = [  # tool, arguments, reward
${calls.join('\n')}
]


def test_replay():
    environment = OpenReward().environments.get(${pythonString(rollout.environment ?? 'owner/name')})
    with environment.session(${session}) as session:
        for tool, arguments, reward in CALLS:
            output = session.call_tool(tool, json.loads(arguments))
            if reward is not None:
                assert math.isclose(output.reward or 0.0, reward, abs_tol=1e-6), (tool, arguments, output.reward, reward)
`;
}
