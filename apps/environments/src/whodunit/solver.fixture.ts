export interface Game {
  prompt: string;
  play(tool: string, input: Record<string, string>): Promise<string>;
}

type Claim = { speaker: string; who: string; room?: string; with?: string; negated?: boolean };

const line = (prompt: string, start: string): string => new RegExp(`${start}(.*)$`, 'm').exec(prompt)![1]!;

function readClaims(speaker: string, answer: string): Claim[] {
  return answer
    .split('\n')
    .slice(1)
    .map((text) => {
      const own = /"I was in the (.+) at nine\."/.exec(text);
      if (own) return { speaker, who: speaker, room: own[1]! };
      const together = /"(\w+) and I were in the same room at nine\."/.exec(text);
      if (together) return { speaker, who: speaker, with: together[1]! };
      const [, who, not, room] = /"(\w+) was( not)? in the (.+) at nine\."/.exec(text)!;
      return { speaker, who: who!, room: room!, negated: not !== undefined };
    });
}

function isTrue({ who, room, with: other, negated }: Claim, at: Record<string, string>): boolean {
  if (other) return at[who] === at[other];
  return (at[who] === room) !== (negated ?? false);
}

/** Every assignment of `names` to `rooms`. */
function* placements(names: string[], rooms: string[]): Generator<Record<string, string>> {
  const [name, ...rest] = names;
  if (name === undefined) return yield {};
  for (const placed of placements(rest, rooms)) for (const room of rooms) yield { ...placed, [name]: room };
}

/** Solves the mystery from the texts only: who can have been in the bloody room so that only liars lie? */
export async function solveWhodunit({ prompt, play }: Game): Promise<void> {
  const suspects = line(prompt, '^Suspects: ').split(', ');
  const rooms = line(prompt, '^Rooms: ').split(', ');
  const liars = /murderer or not: (.+?)\. All others/.exec(prompt)![1]!.split(', ');
  const wound = /something blunt|something sharp|a cord/.exec(prompt)![0];
  const kind = { 'something blunt': 'blunt', 'something sharp': 'sharp', 'a cord': 'cords' }[wound]!;
  const fitting = new RegExp(`${kind}: ([^;\\n]+)`).exec(line(prompt, '^Weapons in the house: '))![1]!.split(', ');

  let bloody = '';
  let weapon = '';
  for (const room of rooms) {
    const found = await play('search', { room });
    if (found.includes('fresh blood')) bloody = room;
    weapon = fitting.find((name) => found.includes(`the ${name}; it was freshly washed`)) ?? weapon;
  }
  const claims: Claim[] = [];
  for (const suspect of suspects) claims.push(...readClaims(suspect, await play('interview', { suspect })));

  const possible = suspects.filter((murderer) => {
    const honest = suspects.filter((suspect) => suspect !== murderer && !liars.includes(suspect));
    // Honest suspects say where they were, so only other innocent ones are tried.
    const known = Object.fromEntries(
      honest.map((name) => [name, claims.find(({ speaker, who, room }) => speaker === name && who === name && room)!.room!]),
    );
    if (Object.values(known).includes(bloody)) return false;
    const open = suspects.filter((suspect) => suspect !== murderer && !honest.includes(suspect));
    const elsewhere = rooms.filter((room) => room !== bloody);
    for (const placed of placements(open, elsewhere)) {
      const at = { ...known, ...placed, [murderer]: bloody };
      if (claims.every((claim) => isTrue(claim, at) === honest.includes(claim.speaker))) return true;
    }
    return false;
  });
  if (possible.length !== 1) throw new Error(`${possible.length} suspects fit`);
  await play('accuse', { suspect: possible[0]!, weapon, room: bloody });
}
