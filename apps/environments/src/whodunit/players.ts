import type { Player } from '@palestra/environment-kit';
import { readCase, readEvidence, suspectsLeft } from './reader.ts';

const pick = <T>(random: () => number, items: readonly T[]): T => items[Math.floor(random() * items.length)]!;

export const players: Player[] = [
  {
    name: 'random',
    description: 'Accuses at random, without an investigation.',
    async play({ prompt, call, random }) {
      const { suspects, rooms, weapons } = readCase(prompt);
      await call('accuse', { suspect: pick(random, suspects), weapon: pick(random, weapons), room: pick(random, rooms) });
    },
  },
  {
    name: 'naive',
    description: 'Searches until it finds the blood, takes any weapon that fits the wound, and accuses one who is known to lie.',
    async play({ prompt, call }) {
      const known = readCase(prompt);
      const results: string[] = [];
      for (const room of known.rooms) {
        results.push((await call('search', { room })).text);
        if (readEvidence(known, results).bloody !== null) break;
      }
      const { bloody, weapon } = readEvidence(known, results);
      await call('accuse', { suspect: known.liars[0]!, weapon: weapon ?? known.fitting[0]!, room: bloody ?? known.rooms[0]! });
    },
  },
  {
    name: 'expert',
    description: 'Searches until blood and weapon are found, hears every suspect, and accuses the only one who fits all statements.',
    async play({ prompt, call }) {
      const known = readCase(prompt);
      const results: string[] = [];
      for (const room of known.rooms) {
        results.push((await call('search', { room })).text);
        const { bloody, weapon } = readEvidence(known, results);
        if (bloody !== null && weapon !== null) break;
      }
      for (const suspect of known.suspects) results.push((await call('interview', { suspect })).text);
      const evidence = readEvidence(known, results);
      const left = suspectsLeft(known, evidence);
      await call('accuse', { suspect: left[0] ?? '', weapon: evidence.weapon ?? '', room: evidence.bloody ?? '' });
    },
  },
];
