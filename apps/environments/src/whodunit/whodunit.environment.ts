import { defineEnvironment, tool } from '@palestra/environment-kit';
import { z } from 'zod';
import { readme } from './card.ts';
import { Investigation, TURNS } from './investigation.ts';
import { levelOf, LEVELS, makeMystery, type Mystery } from './mystery.ts';
import { players } from './players.ts';

const SPLITS: Record<string, { firstSeed: number; count: number }> = {
  train: { firstSeed: 0, count: 2000 },
  validation: { firstSeed: 1_000_000, count: 200 },
  test: { firstSeed: 2_000_000, count: 200 },
};
const taskSchema = z.object({
  id: z.string().optional(),
  /** Default: by the seed. */
  level: z.int().min(1).max(LEVELS).optional(),
  seed: z.int(),
});
const mysteryOf = (task: Task): Mystery => {
  const { seed, level = levelOf(seed) } = taskSchema.parse(task);
  return makeMystery(seed, level);
};

type Task = z.infer<typeof taskSchema>;
interface State {
  mystery: Mystery;
  investigation: Investigation;
}

export const whodunit = defineEnvironment<Task, State>({
  name: 'whodunit',
  description: 'A seeded country-house murder: interview witnesses who lie by rule, search rooms, check alibis, accuse.',
  readme,
  splits: Object.keys(SPLITS),
  tasks: (split) =>
    Array.from({ length: SPLITS[split]!.count }, (_, index) => {
      const seed = SPLITS[split]!.firstSeed + index;
      return { id: `${split}-${index}`, level: levelOf(seed), seed };
    }),
  deterministic: true,
  rewardRange: [0, 1],
  // The prompt lists all suspects, weapons and rooms.
  answersInPrompt: true,
  players,
  solve(task) {
    const { murderer, weapon, weapons, room } = mysteryOf(task);
    const found = weapons.find(({ name }) => name === weapon)!.room;
    const searches = [...new Set([room, found])].map((searched) => ({ tool: 'search', input: { room: searched } }));
    return [...searches, { tool: 'accuse', input: { suspect: murderer, weapon, room } }];
  },
  create({ task }) {
    const mystery = mysteryOf(task);
    return { mystery, investigation: new Investigation(mystery) };
  },
  prompt: ({ state: { mystery } }) => brief(mystery),
  tools: {
    interview: tool({
      description: 'Hear what a suspect says about nine o’clock: three statements, all true or all false.',
      input: z.object({ suspect: z.string().describe('Family name of the suspect') }),
      run: ({ suspect }, { state }) => state.investigation.interview(suspect),
    }),
    search: tool({
      description: 'Search a room for blood and weapons. What you find is always true.',
      input: z.object({ room: z.string().describe('Name of the room') }),
      run: ({ room }, { state }) => state.investigation.search(room),
    }),
    check_alibi: tool({
      description: 'Find out whether a suspect told the truth about their own whereabouts. Two checks per game.',
      input: z.object({ suspect: z.string().describe('Family name of the suspect') }),
      run: ({ suspect }, { state }) => state.investigation.checkAlibi(suspect),
    }),
    accuse: tool({
      description: 'Name the murderer, the weapon and the room. Ends the game; you have one accusation.',
      input: z.object({
        suspect: z.string().describe('Family name of the murderer'),
        weapon: z.string().describe('The murder weapon'),
        room: z.string().describe('The room of the murder'),
      }),
      mode: 'exclusive',
      run: (accusation, { state }) => state.investigation.accuse(accusation),
    }),
  },
});

const WOUNDS = {
  blunt: 'struck down with something blunt',
  sharp: 'stabbed with something sharp',
  cord: 'strangled with a cord of some kind',
} as const;

function brief({ victim, suspects, rooms, weapons, habit, liars, wound }: Mystery): string {
  const ofKind = (kind: string) =>
    weapons
      .filter((weapon) => weapon.kind === kind)
      .map(({ name }) => name)
      .join(', ');
  return `${victim} was murdered at nine o'clock in this house: ${WOUNDS[wound]}. Find out who did it, with what and where.

Suspects: ${suspects.join(', ')}
Rooms: ${rooms.join(', ')}
Weapons in the house: blunt: ${ofKind('blunt')}; sharp: ${ofKind('sharp')}; cords: ${ofKind('cord')}

What is certain:
- At nine the murderer was alone with ${victim} in the room of the murder. Every other suspect was in some other room.
- The murderer lies in every statement. Whoever ${habit} lies in every statement, murderer or not: ${[...liars].join(', ')}. All others always tell the truth.
- Only the room of the murder has fresh blood.
- The murder weapon fits the wound and was freshly washed afterwards. It may lie in any room by now.

You have ${TURNS} turns; each call of interview, search, check_alibi and accuse is one, also with a name that does not exist. You may check two alibis. Accuse once, with your tenth turn at the latest: the game ends then.`;
}
