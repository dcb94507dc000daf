import { textBlock, type ToolResult } from '@palestra/environment-kit';
import type { Mystery } from './mystery.ts';
import { isTrue, sayStatement } from './statement.ts';

/** Calls of an episode, the accusation included. Enough to search every room, hear every suspect and accuse, on each level. */
export const TURNS = 10;
const ALIBI_CHECKS = 2;
const WARNED_TURNS = 3;
const REWARDS = { blood: 0.05, weapon: 0.05, murderer: 0.5, weaponToo: 0.2, roomToo: 0.2, consolation: 0.05 };

/** A player's night: what was found, and the turns left. */
export class Investigation {
  readonly #mystery: Mystery;
  #turnsLeft = TURNS;
  #alibiChecksLeft = ALIBI_CHECKS;
  #bloodFound = false;
  #weaponFound = false;

  constructor(mystery: Mystery) {
    this.#mystery = mystery;
  }

  interview(name: string): ToolResult {
    return this.#spend(() => {
      const suspect = find(this.#mystery.suspects, name);
      if (!suspect) return unknown('suspect', name, this.#mystery.suspects);
      const said = this.#mystery.statements.get(suspect)!.map((statement, index) => `${index + 1}. "${sayStatement(statement)}"`);
      return { content: `${suspect} says:\n${said.join('\n')}`, reward: 0 };
    });
  }

  search(name: string): ToolResult {
    return this.#spend(() => {
      const room = find(this.#mystery.rooms, name);
      if (!room) return unknown('room', name, this.#mystery.rooms);
      const weapons = this.#mystery.weapons.filter((weapon) => weapon.room === room);
      const blood = room === this.#mystery.room;
      const lines = [
        blood ? `There is fresh blood under the carpet of the ${room}.` : `There is no blood in the ${room}.`,
        ...weapons.map(
          ({ name: weapon, washed }) => `You find the ${weapon}; it ${washed ? 'was freshly washed' : 'is covered with dust'}.`,
        ),
      ];
      return {
        content: lines.join('\n'),
        reward: this.#rewardFinds(
          blood,
          weapons.some((weapon) => weapon.name === this.#mystery.weapon),
        ),
      };
    });
  }

  checkAlibi(name: string): ToolResult {
    return this.#spend(() => {
      const suspect = find(this.#mystery.suspects, name);
      if (!suspect) return unknown('suspect', name, this.#mystery.suspects);
      if (this.#alibiChecksLeft === 0) return { content: 'You have checked two alibis; the inspector allows no more.', reward: 0 };
      this.#alibiChecksLeft -= 1;
      const claim = this.#mystery.statements.get(suspect)![0]!;
      const honest = isTrue(claim, suspect, this.#mystery.whereabouts);
      const verdict = honest ? 'is true' : 'is a lie';
      return { content: `What ${suspect} says about their own whereabouts at nine ${verdict}.`, reward: 0 };
    });
  }

  accuse(accusation: { suspect: string; weapon: string; room: string }): ToolResult {
    const { murderer, weapon, room } = this.#mystery;
    const right = {
      suspect: same(accusation.suspect, murderer),
      weapon: same(accusation.weapon, weapon),
      room: same(accusation.room, room),
    };
    const reward = right.suspect
      ? REWARDS.murderer + (right.weapon ? REWARDS.weaponToo : 0) + (right.room ? REWARDS.roomToo : 0)
      : (right.weapon ? REWARDS.consolation : 0) + (right.room ? REWARDS.consolation : 0);
    const solved = right.suspect && right.weapon && right.room;
    return {
      content: `${solved ? 'Solved!' : 'Not quite.'} It was ${murderer} with the ${weapon} in the ${room}.`,
      reward: Math.round(reward * 100) / 100,
      finished: true,
      metadata: { solved, ...right },
    };
  }

  /** Takes one turn. The last one is for the accusation, so another call then ends the game. */
  #spend(investigate: () => ToolResult): ToolResult {
    this.#turnsLeft -= 1;
    if (this.#turnsLeft === 0)
      return { content: 'The sun rises, and nobody was accused. That was your last turn.', reward: 0, finished: true };
    const result = investigate();
    if (this.#turnsLeft > WARNED_TURNS) return result;
    const left = this.#turnsLeft === 1 ? 'One turn left: accuse now.' : `Turns left: ${this.#turnsLeft}.`;
    // Some clients join blocks without a separator.
    return { ...result, content: [textBlock(String(result.content)), textBlock(`\n${left}`)] };
  }

  #rewardFinds(blood: boolean, weapon: boolean): number {
    const reward = (blood && !this.#bloodFound ? REWARDS.blood : 0) + (weapon && !this.#weaponFound ? REWARDS.weapon : 0);
    this.#bloodFound ||= blood;
    this.#weaponFound ||= weapon;
    return reward;
  }
}

const same = (a: string, b: string): boolean => a.trim().toLowerCase() === b.toLowerCase();
const find = (known: string[], name: string): string | undefined => known.find((candidate) => same(name, candidate));
const unknown = (what: string, name: string, known: string[]): ToolResult => ({
  content: `There is no ${what} ${JSON.stringify(name)}. Try: ${known.join(', ')}.`,
  reward: 0,
});
