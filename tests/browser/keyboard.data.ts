import { callMessages, randomOf, rolloutEvents } from '../support/fixtures/events.mjs';

/** A group of three at step 1, and its task again at step 2, for the keys `h l [ ] { } n p d J K`. */
export const KEY_RUN = 'the run of the keys';
const random = randomOf(91);
const sample = (step: number, index: number, reward: number) =>
  rolloutEvents(random, {
    runName: KEY_RUN,
    rolloutName: `step ${step} sample ${index}`,
    rollout_info: { task_index: 1, current_step: step },
    metadata: { sample_idx: index, n_samples: 3 },
    task_spec: { case: 1 },
    messages: [
      { type: 'system_message', content: 'You are a detective. Ask, search, then accuse once. '.repeat(20) },
      { type: 'user_message', content: `Find who did it, ${step}-${index}.` },
      { type: 'reasoning', content: `The lamp was lit at nine. ${'So nobody was in the study. '.repeat(20)}` },
      ...callMessages('a', 'search', { place: 'study' }, 'A letter.', { reward: 0.1 }),
      ...callMessages('b', 'interview', { witness: `witness ${index}` }, 'ValueError: nobody', { metadata: { is_error: true } }),
      ...callMessages('c', 'accuse', { suspect: `suspect ${index}` }, 'They lower their eyes.', { reward, isFinished: true }),
      { type: 'assistant_message', content: 'That was all.' },
    ],
  });
export const [worst, best, middle] = [sample(1, 0, 0), sample(1, 1, 1), sample(1, 2, 0.5)];
export const later = sample(2, 0, 0);
export const keyRun = [worst, best, middle, later];
