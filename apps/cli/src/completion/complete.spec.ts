import { describe, expect, it } from 'vitest';
import { buildProgram } from '../program/program.ts';
import { complete, type NameSource } from './complete.ts';

const names: NameSource = {
  environments: async () => ['palestra/ctf', 'palestra/math', 'acme/guess'],
  runs: async () => ['demo-learner', 'demo-baseline'],
};
/** The values for a command line, whose last word is at the cursor. */
async function values(line: string): Promise<string[] | 'files'> {
  const found = await complete(buildProgram(), line.split(' '), names);
  return found === 'files' ? found : found.map(({ value }) => value);
}

describe('completion', () => {
  it('completes commands and subcommands, without hidden ones', async () => {
    expect(await values('ro')).toEqual(['rollouts']);
    expect(await values('')).toContain('doctor');
    expect(await values('')).not.toContain('__complete');
    expect(await values('env va')).toEqual(['validate']);
    expect(await values('environments va')).toEqual(['validate']);
    expect(await values('docker f')).toEqual([]);
    expect(await values('help env pu')).toEqual(['push']);
  });

  it('completes options, also those of the default command and of the program', async () => {
    expect(await values('env push --deta')).toEqual(['--detach']);
    expect(await values('runs --')).toEqual(expect.arrayContaining(['--search', '--limit', '--output', '--help', '--no-color']));
    expect(await values('env push --regis')).toEqual([]);
  });

  it('completes choices, in every spelling of an option with a value', async () => {
    expect(await values('rollouts export --format s')).toEqual(['sft']);
    expect(await values('rollouts export --format=s')).toEqual(['--format=sft']);
    // As bash splits it.
    expect(await values('rollouts export --format = s')).toEqual(['sft']);
    expect(await values('rollouts export --format =')).toContain('sft');
    expect(await values('runs -o y')).toEqual(['yaml']);
    expect(await values('completion ')).toEqual(['bash', 'zsh', 'fish']);
  });

  it('completes environments and runs from the server', async () => {
    expect(await values('env get pal')).toEqual(['palestra/ctf', 'palestra/math']);
    expect(await values('prepare-tasks --env a')).toEqual(['acme/guess']);
    expect(await values('compare demo-learner demo-b')).toEqual(['demo-baseline']);
    expect(await values('rollouts export --run demo-l')).toEqual(['demo-learner']);
    expect(await values('rollouts demo-')).toEqual(['demo-learner', 'demo-baseline']);
    expect(await values('runs finish --output json demo-l')).toEqual(['demo-learner']);
  });

  it('completes the commands of hosting', async () => {
    expect(await values('env dep')).toEqual(['deploy', 'deploys']);
    expect(await values('env secrets s')).toEqual(['set']);
    expect(await values('env deploy --iso')).toEqual(['--isolation']);
    expect(await values('env scale --provider d')).toEqual(['docker']);
    expect(await values('env logs --severity e')).toEqual(['error']);
    expect(await values('env logs acme/')).toEqual(['acme/guess']);
    expect(await values('env secrets set KEY acme/')).toEqual(['acme/guess']);
    expect(await values('env deploy gu')).toBe('files');
  });

  it('leaves files to the shell', async () => {
    expect(await values('env validate gu')).toBe('files');
    expect(await values('tasks push acme/guess tr')).toBe('files');
    expect(await values('rollouts import a.jsonl b')).toBe('files');
    expect(await values('rollouts export --out ')).toBe('files');
  });

  it('has nothing for values that it does not know', async () => {
    expect(await values('env list --search p')).toEqual([]);
    expect(await values('nonsense x')).toEqual([]);
  });
});
