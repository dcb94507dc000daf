import type { Player } from '@palestra/environment-kit';
import { readQuestion } from './problems.ts';

/** Answers questions up to a level, which it computes from the numbers in the text, and 0 to all others. */
const solving = (level: number): Player['play'] =>
  async function play({ prompt, call }) {
    const read = readQuestion(prompt);
    const answer = read && read.family.level <= level ? String(read.family.answer(read.values)) : '0';
    await call('submit', { answer });
  };

export const players: Player[] = [
  {
    name: 'random',
    description: 'Submits a number from -20 to 100.',
    async play({ call, random }) {
      await call('submit', { answer: String(Math.floor(random() * 121) - 20) });
    },
  },
  { name: 'naive', description: 'Computes the answers of levels 1 and 2, and submits 0 otherwise.', play: solving(2) },
  {
    name: 'expert',
    description: 'Recognises the kind of the question by its text, and computes the answer from the numbers in it.',
    play: solving(5),
  },
];
