/** The room of every suspect at the time of the murder. */
export type Whereabouts = ReadonlyMap<string, string>;

export type Statement =
  | { kind: 'was_in'; room: string }
  | { kind: 'saw'; other: string; room: string }
  | { kind: 'did_not_see'; other: string; room: string }
  | { kind: 'together'; other: string };

export function isTrue(statement: Statement, speaker: string, whereabouts: Whereabouts): boolean {
  switch (statement.kind) {
    case 'was_in':
      return whereabouts.get(speaker) === statement.room;
    case 'saw':
      return whereabouts.get(statement.other) === statement.room;
    case 'did_not_see':
      return whereabouts.get(statement.other) !== statement.room;
    case 'together':
      return whereabouts.get(statement.other) === whereabouts.get(speaker);
  }
}

export function sayStatement(statement: Statement): string {
  switch (statement.kind) {
    case 'was_in':
      return `I was in the ${statement.room} at nine.`;
    case 'saw':
      return `${statement.other} was in the ${statement.room} at nine.`;
    case 'did_not_see':
      return `${statement.other} was not in the ${statement.room} at nine.`;
    case 'together':
      return `${statement.other} and I were in the same room at nine.`;
  }
}
