// Rollouts as a trainer uploads them: a start event and messages of real words, each event 1 kB of JSON.
import { randomUUID } from 'node:crypto';

export const EVENT_BYTES = 1024;
export const BATCH_SIZE = 100;
const WORDS =
  'the model reads a question then calls search with words of it and looks at what came back before it writes an answer that the environment scores against the one it knows'.split(
    ' ',
  );
const TYPES = ['assistant_message', 'tool_call', 'tool_result'];

/** `bytes` of seeded words. */
export function words(seed, bytes) {
  let state = (seed * 2_654_435_761 + 1) >>> 0;
  let text = '';
  while (text.length < bytes) {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    text += `${WORDS[(state >>> 8) % WORDS.length]}${state >>> 27 === 0 ? (state >>> 4) % 1000 : ''} `;
  }
  return text.slice(0, bytes);
}

/** Fills the text at `path` until the JSON of the event has `EVENT_BYTES`. */
function padded(event, holder, key, seed) {
  holder[key] = '';
  holder[key] = words(seed, Math.max(0, EVENT_BYTES - JSON.stringify(event).length));
  return event;
}

/** One batch: the start event of a rollout and its messages, together `size` events of 1 kB. */
export function rolloutEvents(number, runName = 'ingested', size = BATCH_SIZE) {
  const rolloutEventId = randomUUID();
  const timestamp = Date.now();
  const task_spec = {};
  const start = {
    eventType: 'rollout',
    eventId: rolloutEventId,
    timestamp,
    runName,
    rolloutName: `train-echo_train-${number}`,
    environment: 'palestra/echo',
    split: 'train',
    metadata: { step: Math.floor(number / 512) },
    task_spec,
  };
  const messages = Array.from({ length: size - 1 }, (_, index) => {
    const type = TYPES[index % TYPES.length];
    const event = {
      eventType: 'message',
      eventId: randomUUID(),
      timestamp: timestamp + index,
      index,
      rolloutEventId,
      type,
      ...(type === 'assistant_message' ? {} : { name: 'search', callId: `call_${index}` }),
      ...(type === 'tool_result' ? { reward: 0.25 } : {}),
      isFinished: index === size - 2,
      metadata: { turn: Math.floor(index / TYPES.length) },
    };
    return padded(event, event, 'content', number * size + index);
  });
  return [padded(start, task_spec, 'question', number), ...messages];
}
