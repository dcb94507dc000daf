import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Environment, playTask, validateEnvironment } from '@palestra/environment-kit';
import type { EnvironmentReport } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { bundledEnvironments } from './catalogue.ts';

/** PALESTRA_WRITE_REPORTS=1 writes the reports, which takes some minutes. */
const writes = process.env['PALESTRA_WRITE_REPORTS'] === '1';
const PATIENCE_MS = 480_000;
/** Tasks that the checks play per split, and tasks of the split `test` that each player plays. Grading a program takes a second. */
const PLAYED: Record<string, { tasks: number; playerTasks: number }> = {
  coding: { tasks: 4, playerTasks: 28 },
  ctf: { tasks: 10, playerTasks: 50 },
  whodunit: { tasks: 10, playerTasks: 200 },
  math: { tasks: 10, playerTasks: 200 },
};

const fileOf = (name: string) => path.join(import.meta.dirname, name, 'report.json');

describe.each(Object.keys(PLAYED))('the report of %s', (name) => {
  const environment = bundledEnvironments.find((one) => one.name === name)!;

  test.each(writes ? ['is written'] : [])('%s', { timeout: PATIENCE_MS }, async () => {
    const report = await validateEnvironment(environment, PLAYED[name]);
    expect(report.checks.length).toBeGreaterThan(0);
    writeFileSync(fileOf(name), `${JSON.stringify(report, null, 2)}\n`);
  });

  test('has no failed check, and players between which a model finds its place', () => {
    const { checks, players, reward_range: range } = read(name);
    expect(checks.filter(({ status }) => status === 'failed')).toEqual([]);
    expect(range).toEqual([0, 1]);
    const [random, naive, expert, solve] = ['random', 'naive', 'expert', 'solve'].map((wanted) =>
      players.find((one) => one.name === wanted)!,
    );
    expect([expert!.solved, solve!.solved]).toEqual([1, 1]);
    expect(random!.high).toBeLessThan(naive!.low);
    expect(naive!.high).toBeLessThan(0.8);
  });

  test('states what the players reach', { timeout: PATIENCE_MS }, async () => {
    for (const { name: player, split, tasks, mean } of read(name).players) {
      const indexes = await played(environment, split, tasks);
      const sample = name === 'coding' ? indexes.filter((_, at) => at % 7 === 0) : indexes;
      let sum = 0;
      for (const index of sample) {
        const chosen = environment.players!.find((one) => one.name === player);
        const { total } = await playTask(environment, { split, index, ...(chosen && { player: chosen }) });
        sum += total;
      }
      // The tasks that were not played have totals from 0 to 1.
      const rest = mean * indexes.length - sum;
      expect(rest, player).toBeGreaterThan(-1e-7);
      expect(rest, player).toBeLessThan(indexes.length - sample.length + 1e-7);
    }
  });
});

const read = (name: string) => JSON.parse(readFileSync(fileOf(name), 'utf8')) as EnvironmentReport;

async function played({ tasks }: Environment, split: string, count: number): Promise<number[]> {
  const total = (await tasks!(split)).length;
  return Array.from({ length: count }, (_, at) => Math.floor((at * total) / count));
}
