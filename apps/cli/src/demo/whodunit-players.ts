import type { Policy, PolicyTurn } from '@palestra/client';
import { type Case, type Evidence, readCase, readEvidence, suspectsLeft } from './deduction.ts';
import { call } from './script.ts';

/** Scripted policies of different skill for `palestra/whodunit`. Each decides from the texts that a model would see. */
export const whodunitPlayers = { detective, careless, hasty, gossip, daydreamer } satisfies Record<string, Policy>;

/** Searches every room, interviews everybody, and accuses the only remaining suspect. */
function detective({ prompt, turn, results }: PolicyTurn) {
  const known = readCase(prompt);
  const evidence = readEvidence(known, results);
  const room = known.rooms[turn];
  if (room) {
    return call('search', { room }, { reasoning: `Facts before words. So far: ${summary(evidence)}. Next I search the ${room}.` });
  }
  const suspect = known.suspects[turn - known.rooms.length];
  if (suspect) {
    const habit = known.liars.includes(suspect)
      ? 'lies in any case, so the opposite of each statement holds'
      : 'tells the truth unless guilty';
    return call('interview', { suspect }, { reasoning: `${suspect} ${habit}.`, message: `Let me hear **${suspect}**.` });
  }
  const left = suspectsLeft(known, evidence);
  return call('accuse', accusation(known, evidence, left[0]), {
    reasoning: `Let $S$ be the ${known.suspects.length} suspects and $c(s)$ mean that some placement of the others satisfies all ${evidence.claims.length} statements if $s$ is the murderer. I checked each $s$: $$\\{s \\in S : c(s)\\} = \\{\\text{${left.join(', ')}}\\}$$`,
    message: verdict(known, evidence, left),
  });
}

/** A table of the suspects in Markdown. */
function verdict({ suspects, liars }: Case, evidence: Evidence, left: string[]): string {
  const rows = suspects.map(
    (name) => `| ${name} | ${liars.includes(name) ? 'always' : 'if guilty'} | ${left.includes(name) ? '**yes**' : 'no'} |`,
  );
  return `### It can only have been ${left[0]}

- room: the ${evidence.bloody}, by the blood
- weapon: the ${evidence.weapon}, freshly washed

| suspect | lies | can be the murderer |
| --- | --- | --- |
${rows.join('\n')}`;
}

/** Finds the room, then repeats an accusation with wrong argument names until its turns are used up. */
function careless({ prompt, turn, results }: PolicyTurn) {
  const known = readCase(prompt);
  const evidence = readEvidence(known, results);
  const room = known.rooms[turn];
  if (room && evidence.bloody === null) return call('search', { room });
  const { suspect: murderer, weapon, room: place } = accusation(known, evidence, known.liars[0]);
  const refused = results.at(-1)?.startsWith('Error') ?? false;
  return call('accuse', { murderer, weapon, place }, { message: refused ? 'The accusation was refused. I repeat it.' : 'I am sure.' });
}

/** Stops at the first blood and accuses a known liar. */
function hasty({ prompt, turn, results }: PolicyTurn) {
  const known = readCase(prompt);
  const evidence = readEvidence(known, results);
  const room = known.rooms[turn];
  if (room && evidence.bloody === null) return call('search', { room }, { message: `I will look into the ${room}.` });
  const suspect = known.liars[0];
  const reasoning = `${suspect} always lies, so ${suspect} has something to hide: $P(\\text{guilty} \\mid \\text{liar}) \\approx 1$.`;
  return call('accuse', accusation(known, evidence, suspect), { reasoning });
}

/** Interviews two suspects and guesses. */
function gossip({ prompt, turn, sample, results }: PolicyTurn) {
  const known = readCase(prompt);
  const suspect = known.suspects[(turn + sample) % known.suspects.length]!;
  if (turn < 2) return call('interview', { suspect });
  return call('accuse', accusation(known, readEvidence(known, results), suspect), { message: 'I have heard enough.' });
}

/** Calls a tool that does not exist, then answers in prose and never accuses. */
function daydreamer({ turn }: PolicyTurn) {
  if (turn === 0) return call('ask_butler', { question: 'Was it you?' });
  return { message: 'It is always the butler. I rest my case.' };
}

function accusation({ suspects, rooms, fitting }: Case, { bloody, weapon }: Evidence, suspect: string | undefined) {
  return { suspect: suspect ?? suspects[0] ?? '', weapon: weapon ?? fitting[0] ?? '', room: bloody ?? rooms[0] ?? '' };
}

function summary({ bloody, weapon }: Evidence): string {
  return `${bloody ? `blood in the ${bloody}` : 'no blood yet'}, ${weapon ? `the ${weapon} was washed` : 'no washed weapon yet'}`;
}
