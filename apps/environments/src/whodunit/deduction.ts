import { isTrue, type Statement, type Whereabouts } from './statement.ts';

export interface Testimony {
  suspects: readonly string[];
  rooms: readonly string[];
  murderRoom: string;
  /** Suspects who always lie. */
  liars: ReadonlySet<string>;
  statements: ReadonlyMap<string, readonly Statement[]>;
}

/**
 * Returns the possible murderers. The murderer was alone in the murder room and lies; so do the liars; all others tell the truth. Tries
 * every murderer and every distribution of the others over the rooms that the statements allow.
 */
export function possibleMurderers(testimony: Testimony): string[] {
  return testimony.suspects.filter((murderer) => isPossible(testimony, murderer));
}

function isPossible(testimony: Testimony, murderer: string): boolean {
  const { suspects, rooms, murderRoom, statements } = testimony;
  const lies = (suspect: string) => suspect === murderer || testimony.liars.has(suspect);
  const others = suspects.filter((suspect) => suspect !== murderer);
  const otherRooms = rooms.filter((room) => room !== murderRoom);
  const whereabouts = new Map([[murderer, murderRoom]]);

  const holds = (): boolean =>
    suspects.every((speaker) => statements.get(speaker)!.every((statement) => isTrue(statement, speaker, whereabouts) !== lies(speaker)));

  const place = (index: number): boolean => {
    const suspect = others[index];
    if (suspect === undefined) return holds();
    return otherRooms.some((room) => {
      whereabouts.set(suspect, room);
      return claimFits(statements.get(suspect)!, suspect, whereabouts, lies(suspect)) && place(index + 1);
    });
  };
  return place(0);
}

/** Statements about oneself fix most rooms first. */
function claimFits(statements: readonly Statement[], suspect: string, whereabouts: Whereabouts, lies: boolean): boolean {
  return statements.every((statement) => statement.kind !== 'was_in' || isTrue(statement, suspect, whereabouts) !== lies);
}
