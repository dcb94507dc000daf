import type { Policy, PolicyAction, PolicyTurn } from '@palestra/client';
import { type Case, type Evidence, readCase, readEvidence, suspectsLeft } from './deduction.ts';

/** Scripted policies of different skill. Each decides from the texts that a model would see. */
export const players = { detective, hasty, gossip, daydreamer } satisfies Record<string, Policy>;
export type PlayerName = keyof typeof players;

const call = (name: string, args: Record<string, string>): PolicyAction['toolCall'] => ({ name, arguments: args });

/** Searches every room, interviews everybody, and accuses the only remaining suspect. */
function detective({ prompt, turn, results }: PolicyTurn): PolicyAction {
  const known = readCase(prompt);
  const evidence = readEvidence(known, results);
  const room = known.rooms[turn];
  if (room) {
    return {
      reasoning: `Facts before words: blood marks the room, a washed weapon that fits the wound is the weapon. So far: ${summary(evidence)}.`,
      toolCall: call('search', { room }),
    };
  }
  const suspect = known.suspects[turn - known.rooms.length];
  if (suspect) {
    const habit = known.liars.includes(suspect)
      ? 'lies in any case, so the opposite of each statement holds'
      : 'tells the truth unless guilty';
    return { reasoning: `${suspect} ${habit}.`, message: `Let me hear ${suspect}.`, toolCall: call('interview', { suspect }) };
  }
  const left = suspectsLeft(known, evidence);
  return {
    reasoning: `With the murder in the ${evidence.bloody}, I tried everybody as the murderer against all ${evidence.claims.length} statements. Without a contradiction: ${left.join(', ')}.`,
    message: `It can only have been ${left[0]}.`,
    toolCall: accuse(known, evidence, left[0]),
  };
}

/** Stops at the first blood and accuses a known liar. */
function hasty({ prompt, turn, results }: PolicyTurn): PolicyAction {
  const known = readCase(prompt);
  const evidence = readEvidence(known, results);
  const room = known.rooms[turn];
  if (room && evidence.bloody === null) return { message: `I will look into the ${room}.`, toolCall: call('search', { room }) };
  const suspect = known.liars[0];
  return { reasoning: `${suspect} always lies, so ${suspect} has something to hide.`, toolCall: accuse(known, evidence, suspect) };
}

/** Interviews two suspects and guesses. */
function gossip({ prompt, turn, sample, results }: PolicyTurn): PolicyAction {
  const known = readCase(prompt);
  const suspect = known.suspects[(turn + sample) % known.suspects.length]!;
  if (turn < 2) return { toolCall: call('interview', { suspect }) };
  return { message: 'I have heard enough.', toolCall: accuse(known, readEvidence(known, results), suspect) };
}

/** Calls a tool that does not exist, then answers in prose and never accuses. */
function daydreamer({ turn }: PolicyTurn): PolicyAction {
  if (turn === 0) return { toolCall: call('ask_butler', { question: 'Was it you?' }) };
  return { message: 'It is always the butler. I rest my case.' };
}

function accuse({ suspects, rooms, fitting }: Case, { bloody, weapon }: Evidence, suspect: string | undefined): PolicyAction['toolCall'] {
  return call('accuse', { suspect: suspect ?? suspects[0] ?? '', weapon: weapon ?? fitting[0] ?? '', room: bloody ?? rooms[0] ?? '' });
}

function summary({ bloody, weapon }: Evidence): string {
  return `${bloody ? `blood in the ${bloody}` : 'no blood yet'}, ${weapon ? `the ${weapon} was washed` : 'no washed weapon yet'}`;
}
