import { randomUUID } from 'node:crypto';
import type { SharedPalestra } from '../support/palestra.ts';

export const runName = 'browser suite / whodunit';
export const toolResult = 'Everett Moss lowers his eyes. Suspect, weapon and place are right.';
export const hostile = [
  '<script>window.pwned = 1</script>',
  '<img src="https://evil.example/a.png" onerror="window.pwned = 2">',
  '![pixel](https://evil.example/b.png) [link](javascript:window.pwned=3) [fine](https://example.org/)',
  '<form id="body"><input name="cookie"></form><iframe src="https://evil.example"></iframe><style>body{display:none}</style>',
  'right-to-left: \u202etxt.exe, zero width: a\u200bb',
].join('\n\n');
export const terminal = '\u001b[1;31mred alert\u001b[0m \u001b]8;;https://evil.example\u0007not a link\u001b]8;;\u0007 <b>tag</b>';

interface Message {
  type: string;
  content: string;
  name?: string;
  callId?: string;
  reward?: number;
  isFinished?: boolean;
}

async function upload(palestra: SharedPalestra, events: object[]): Promise<void> {
  const answer = await fetch(`${palestra.url}/v1/rollouts`, {
    method: 'POST',
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ events }),
  });
  if (!answer.ok) throw new Error(`POST /v1/rollouts: ${answer.status} ${await answer.text()}`);
}

/** Uploads one rollout as the SDK does; the indexes in `skip` never arrive. Returns its id. */
async function uploadRollout(
  palestra: SharedPalestra,
  taskIndex: number,
  name: string,
  messages: Message[],
  skip: number[] = [],
): Promise<string> {
  const id = randomUUID();
  const timestamp = Date.now();
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp,
    runName,
    rolloutName: name,
    environment: 'palestra/whodunit',
    split: 'train',
  };
  await upload(palestra, [
    { ...start, rollout_info: { task_index: taskIndex }, metadata: { policy: 'scripted' }, task_spec: { seed: taskIndex } },
  ]);
  const events = messages
    .map((message, index) => ({
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp,
      index,
      isFinished: false,
      metadata: {},
      ...message,
    }))
    .filter((event) => !skip.includes(event.index));
  await upload(palestra, events);
  return id;
}

function episode(reward: number): Message[] {
  return [
    { type: 'system_message', content: 'You are a detective. Ask, search, then accuse once. '.repeat(12) },
    { type: 'user_message', content: 'Old Ambrose Finch was found at the foot of the clock tower. Find **who**, with *what*, and where.' },
    { type: 'reasoning', content: 'The lamp was lit at nine, so whoever was in the study could not have been on the stairs.' },
    { type: 'tool_call', name: 'interview', callId: 'c1', content: '{"witness":"the gardener","about":"Ada Finch"}' },
    { type: 'tool_result', callId: 'c1', content: 'The gardener saw Ada Finch in the orangery at 21:00.', reward: 0.02 },
    { type: 'assistant_message', content: 'The gardener lies by rule, so she was **not** there.' },
    {
      type: 'tool_call',
      name: 'accuse',
      callId: 'c2',
      content: '{"suspect":"Everett Moss","weapon":"the brass pendulum","location":"the clock tower"}',
    },
    {
      type: 'tool_result',
      callId: 'c2',
      content: reward > 0 ? toolResult : 'They shake their head. The trail is cold.',
      reward,
      isFinished: true,
    },
  ];
}

/** Eight tasks of four samples, a rollout with a gap, one with hostile texts, one with 3 000 messages. */
export async function uploadRun(palestra: SharedPalestra): Promise<{ solved: string; hostile: string; long: string }> {
  const ids: string[] = [];
  for (let task = 0; task < 8; task += 1) {
    const samples = [0, 1, 2, 3].map((sample) =>
      uploadRollout(palestra, task, `whodunit-train-${task}-r${sample}`, episode((task + sample) % 3 === 0 ? 0 : 0.98)),
    );
    ids.push(...(await Promise.all(samples)));
  }
  const hostileId = await uploadRollout(
    palestra,
    9,
    '<b>hostile</b>\u202e',
    [
      { type: 'user_message', content: hostile },
      { type: 'assistant_message', content: hostile },
      { type: 'reasoning', content: hostile },
      { type: 'tool_call', name: '<script>tool</script>', callId: 'h', content: '{"__proto__":"x","<img src=x>":"\\u202e"}' },
      { type: 'tool_result', callId: 'h', content: terminal },
    ],
    [2],
  );
  const long = Array.from({ length: 3000 }, (_, i): Message => ({ type: 'assistant_message', content: `message number ${i}` }));
  const longId = await uploadRollout(palestra, 10, 'three thousand messages', long);
  return { solved: ids[1]!, hostile: hostileId, long: longId };
}
