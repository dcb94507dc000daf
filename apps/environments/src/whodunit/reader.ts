/**
 * Reads the texts that a player sees, without knowledge of how tasks are generated. apps/cli/src/demo/deduction.ts reads the same texts:
 * change both.
 */

export interface Case {
  suspects: string[];
  rooms: string[];
  liars: string[];
  weapons: string[];
  /** Weapons that match the wound. */
  fitting: string[];
}

interface Claim {
  speaker: string;
  who: string;
  room?: string;
  with?: string;
  negated: boolean;
}

export interface Evidence {
  bloody: string | null;
  weapon: string | null;
  claims: Claim[];
}

const KINDS = { 'something blunt': 'blunt', 'something sharp': 'sharp', 'a cord': 'cords' } as const;

const weaponsOf = (kind: string): RegExp => new RegExp(`^Weapons in the house: .*?${kind}: ([^;\\n]+)`, 'm');

export function readCase(prompt: string): Case {
  const list = (pattern: RegExp) => pattern.exec(prompt)?.[1]?.split(', ') ?? [];
  const wound = /something blunt|something sharp|a cord/.exec(prompt)?.[0] as keyof typeof KINDS | undefined;
  return {
    suspects: list(/^Suspects: (.*)$/m),
    rooms: list(/^Rooms: (.*)$/m),
    liars: list(/murderer or not: (.+?)\. All others/),
    weapons: ['blunt', 'sharp', 'cords'].flatMap((kind) => list(weaponsOf(kind))),
    fitting: wound ? list(weaponsOf(KINDS[wound])) : [],
  };
}

/** Parses the results of searches and interviews, in any order. */
export function readEvidence({ fitting }: Case, results: string[]): Evidence {
  const evidence: Evidence = { bloody: null, weapon: null, claims: [] };
  for (const result of results) {
    evidence.bloody = /fresh blood under the carpet of the (.+?)\./.exec(result)?.[1] ?? evidence.bloody;
    evidence.weapon = fitting.find((name) => result.includes(`the ${name}; it was freshly washed`)) ?? evidence.weapon;
    const speaker = /^(.+) says:\n/.exec(result)?.[1];
    if (speaker) evidence.claims.push(...readClaims(speaker, result));
  }
  return evidence;
}

function readClaims(speaker: string, text: string): Claim[] {
  return text.split('\n').flatMap((line): Claim[] => {
    const alibi = /"I was in the (.+) at nine\."/.exec(line);
    if (alibi) return [{ speaker, who: speaker, room: alibi[1]!, negated: false }];
    const together = /"(.+) and I were in the same room at nine\."/.exec(line);
    if (together) return [{ speaker, who: speaker, with: together[1]!, negated: false }];
    const seen = /"(.+) was( not)? in the (.+) at nine\."/.exec(line);
    return seen ? [{ speaker, who: seen[1]!, room: seen[3]!, negated: seen[2] !== undefined }] : [];
  });
}

/** The suspects who can have been alone in the room with blood, such that exactly the murderer and the liars lie. */
export function suspectsLeft({ suspects, rooms, liars }: Case, { bloody, claims }: Evidence): string[] {
  if (bloody === null) return suspects;
  const elsewhere = rooms.filter((room) => room !== bloody);
  return suspects.filter((murderer) => {
    const lies = (name: string) => name === murderer || liars.includes(name);
    const others = suspects.filter((name) => name !== murderer);
    const choices = others.map((name) => (lies(name) ? elsewhere : elsewhere.filter((room) => saysSo(claims, name, room))));
    for (const placed of placements(others, choices)) {
      const at = { ...placed, [murderer]: bloody };
      if (claims.every((claim) => holds(claim, at) !== lies(claim.speaker))) return true;
    }
    return false;
  });
}

/** Whether a room is consistent with the alibi of an honest suspect. */
function saysSo(claims: Claim[], name: string, room: string): boolean {
  const alibi = claims.find((claim) => claim.speaker === name && claim.who === name && claim.room !== undefined);
  return alibi === undefined || alibi.room === room;
}

function holds(claim: Claim, at: Record<string, string>): boolean {
  if (claim.with !== undefined) return at[claim.who] === at[claim.with];
  return (at[claim.who] === claim.room) !== claim.negated;
}

function* placements(names: string[], choices: string[][]): Generator<Record<string, string>> {
  const [name, ...others] = names;
  if (name === undefined) return yield {};
  for (const room of choices[0]!) for (const placed of placements(others, choices.slice(1))) yield { [name]: room, ...placed };
}
