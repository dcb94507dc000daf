import { SeededRandom } from '@palestra/environment-kit';
import { possibleMurderers } from './deduction.ts';
import { isTrue, type Statement, type Whereabouts } from './statement.ts';

const NAMES = ['Abernathy', 'Bellweather', 'Crane', 'Dunmore', 'Eastlake', 'Fairfax', 'Grimshaw', 'Holloway', 'Ingram', 'Jessop'];
const ROOMS = ['library', 'kitchen', 'conservatory', 'ballroom', 'cellar', 'study', 'chapel', 'boathouse'];
const VICTIMS = ['Lord Ashworth', 'Lady Penhallow', 'Colonel Whitlock', 'Professor Marsh', 'Countess Orlova'];
const HABITS = ['smokes', 'plays cards', 'wears a monocle', 'drinks absinthe', 'collects butterflies'];

export type WoundKind = 'blunt' | 'sharp' | 'cord';
const WEAPONS: Record<WoundKind, string[]> = {
  blunt: ['candlestick', 'poker', 'trophy', 'croquet mallet'],
  sharp: ['letter opener', 'carving knife', 'garden shears', 'sabre'],
  cord: ['rope', 'curtain cord', 'lamp flex', 'violin string'],
};
const KINDS: WoundKind[] = ['blunt', 'sharp', 'cord'];

export interface Weapon {
  name: string;
  kind: WoundKind;
  room: string;
  /** Freshly washed: the murder weapon and one of another kind. */
  washed: boolean;
}

export interface Mystery {
  victim: string;
  suspects: string[];
  rooms: string[];
  weapons: Weapon[];
  /** The common property of those who always lie. */
  habit: string;
  liars: ReadonlySet<string>;
  whereabouts: Whereabouts;
  statements: ReadonlyMap<string, Statement[]>;
  wound: WoundKind;
  murderer: string;
  weapon: string;
  room: string;
}

/** Suspects, rooms and those who lie in any case, by level. */
const SIZES = [
  { suspects: 3, rooms: 3, liars: 1 },
  { suspects: 4, rooms: 3, liars: 1 },
  { suspects: 4, rooms: 4, liars: 1 },
  { suspects: 5, rooms: 4, liars: 2 },
];
export const LEVELS = SIZES.length;

/** Neighbouring seeds have different levels. */
export const levelOf = (seed: number): number => 1 + (Math.abs(seed) % LEVELS);

/** The mystery of a seed, with exactly one murderer who fits all statements. */
export function makeMystery(seed: number, level: number): Mystery {
  for (let attempt = 0; ; attempt += 1) {
    const mystery = draft(new SeededRandom('whodunit', level, seed, attempt), SIZES[level - 1]!);
    if (possibleMurderers({ ...mystery, murderRoom: mystery.room }).length === 1) return mystery;
  }
}

function draft(random: SeededRandom, size: (typeof SIZES)[number]): Mystery {
  const suspects = random.sample(NAMES, size.suspects);
  const rooms = random.sample(ROOMS, size.rooms);
  const murderer = random.pick(suspects);
  const room = random.pick(rooms);
  const elsewhere = rooms.filter((other) => other !== room);
  const whereabouts = new Map(suspects.map((suspect) => [suspect, suspect === murderer ? room : random.pick(elsewhere)]));
  const liars = new Set(random.sample(suspects, size.liars));
  const statements = new Map(
    suspects.map((suspect) => {
      const lies = suspect === murderer || liars.has(suspect);
      return [suspect, testify(random, suspect, { suspects, rooms, whereabouts, lies })];
    }),
  );
  const wound = random.pick(KINDS);
  const weapons = placeWeapons(random, rooms, wound);
  const weapon = weapons.find(({ kind, washed }) => washed && kind === wound)!.name;
  const [victim, habit] = [random.pick(VICTIMS), random.pick(HABITS)];
  return { victim, suspects, rooms, weapons, habit, liars, whereabouts, statements, wound, murderer, weapon, room };
}

interface Witness {
  suspects: string[];
  rooms: string[];
  whereabouts: Whereabouts;
  lies: boolean;
}

/** Where the witness claims to have been and two more statements; all true or all false. */
function testify(random: SeededRandom, speaker: string, { suspects, rooms, whereabouts, lies }: Witness): Statement[] {
  const others = suspects.filter((suspect) => suspect !== speaker);
  const fits = (statement: Statement) => isTrue(statement, speaker, whereabouts) !== lies;
  const claims = rooms.map((room): Statement => ({ kind: 'was_in', room })).filter(fits);
  const remarks = others
    .flatMap((other): Statement[] => [
      { kind: 'together', other },
      ...rooms.flatMap((room): Statement[] => [
        { kind: 'saw', other, room },
        { kind: 'did_not_see', other, room },
      ]),
    ])
    .filter(fits);
  return [random.pick(claims), ...random.sample(remarks, 2)];
}

function placeWeapons(random: SeededRandom, rooms: string[], wound: WoundKind): Weapon[] {
  const decoy = random.pick(KINDS.filter((kind) => kind !== wound));
  return KINDS.flatMap((kind) =>
    random.sample(WEAPONS[kind], 2).map((name, index) => ({
      name,
      kind,
      room: random.pick(rooms),
      washed: index === 0 && (kind === wound || kind === decoy),
    })),
  );
}
