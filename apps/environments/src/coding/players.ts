import type { PlayedSession, Player } from '@palestra/environment-kit';
import { families } from './families/index.ts';
import type { Exercise } from './families/family.ts';

/** Exercises by their statement, which the prompt contains. */
const library = new Map(families.flatMap(({ exercises }) => exercises.map((exercise) => [exercise.statement, exercise] as const)));

/** The exercise that the prompt states. It is found by the text alone. */
function recognise({ prompt }: PlayedSession): Exercise {
  for (const [statement, exercise] of library) if (prompt.includes(`\n\n${statement}\n\n`)) return exercise;
  throw new Error('the prompt states no known exercise');
}

const GUESSES = ['0', '-1', '[]', '""', 'args[0]', 'len(args[0])', 'sum(args[0])', 'sorted(args[0])'];

export const players: Player[] = [
  {
    name: 'random',
    description: 'Submits a function that returns a constant or its first argument.',
    async play({ call, random }) {
      const guess = GUESSES[Math.floor(random() * GUESSES.length)]!;
      await call('submit', { code: `def solve(*args):\n    return ${guess}` });
    },
  },
  {
    name: 'naive',
    description: 'Solves exercises of levels 1 and 2, and makes a typical mistake in all others.',
    async play(session) {
      const { level, python, mutants } = recognise(session);
      await session.call('submit', { code: level <= 2 ? python : mutants[0]! });
    },
  },
  {
    name: 'expert',
    description: 'Finds the exercise in its collection of solutions by the statement, and submits the solution.',
    async play(session) {
      await session.call('submit', { code: recognise(session).python });
    },
  },
];
