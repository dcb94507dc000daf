// Rollouts as a trainer uploads them, a function of their number: two runs, groups of eight, 512 rollouts a step.
import { createHash } from 'node:crypto';
import { words } from './events.mjs';

export const GROUP = 8;
export const STEP = 512;
/** One rollout of so many has the rare word and the text that the regex finds. */
export const RARE_EVERY = 10_007;
export const RARE_WORD = 'needle';
export const NEEDLE = 'nee[d]le_[0-9]{3,}_[a-f]{2}';
/** In most messages. */
export const COMMON_WORD = 'model';
export const ABSENT_WORD = 'zzyzxian';

const MESSAGE_CHARACTERS = 150;
export const runOf = (number) => `load-${number % 2 === 0 ? 'a' : 'b'}`;

/** The same UUID for the same name. */
export function uuidOf(name) {
  const hex = createHash('sha256').update(name).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export const rewardOf = (number) => ((number * 7) % 5 < 2 ? 1 : 0);

/** The events of a rollout: its start, then messages of so many characters. The first message has a word of this rollout only. */
export function rollout(number, { run, messages = 3, characters = MESSAGE_CHARACTERS } = {}) {
  const runName = run ?? runOf(number);
  const name = `${runName} ${number}`;
  const id = uuidOf(name);
  const ofRun = run === undefined ? Math.floor(number / 2) : number;
  const timestamp = Date.now();
  const start = {
    eventType: 'rollout',
    eventId: id,
    timestamp,
    runName,
    rolloutName: `train-echo_train-${number}`,
    environment: 'palestra/echo',
    split: 'train',
    rollout_info: { task_index: Math.floor(ofRun / GROUP) % 1000, current_step: Math.floor(ofRun / STEP) },
  };
  const rare = number % RARE_EVERY === RARE_EVERY >> 1 ? `${RARE_WORD} needle_${number}_ab ` : '';
  const types = ['user_message', 'assistant_message', 'tool_result'];
  return [
    start,
    ...Array.from({ length: messages }, (_, index) => {
      const last = index === messages - 1;
      const head = index === 0 ? `question${number} ${rare}` : '';
      return {
        eventType: 'message',
        eventId: uuidOf(`${name} ${index}`),
        timestamp: timestamp + index,
        index,
        rolloutEventId: id,
        type: types[Math.min(index, 1) + (last && index > 0 ? 1 : 0)],
        ...(last && { name: 'submit', callId: `call_${index}`, reward: rewardOf(number) }),
        content: head + words(number * messages + index, characters - head.length),
        isFinished: last,
        metadata: { turn: index },
      };
    }),
  ];
}
