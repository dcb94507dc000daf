import { isObject, type JsonObject, type Split, type TaskSpec, type ToolSpec } from '@palestra/protocol';
import { describeError } from '../host/describe-error.ts';
import { playEpisode, playOpened, type PlayedEpisode } from '../play/play-episode.ts';
import { solver } from '../play/play-task.ts';
import type { Player } from '../play/player.ts';
import { randomInput, randomPlayer } from '../play/random-player.ts';
import type { Subject, SubjectEpisode } from '../play/subject.ts';
import { withinTime } from '../play/within-time.ts';
import { SeededRandom } from '../random.ts';

/** What validation observes. The checks (checks.ts) only read it. */
export interface Evidence {
  subject: Subject;
  splits: SplitEvidence[];
  /** Episodes of the oracle: `solve`, or the player `expert`. Empty without one. */
  oracle: EpisodeEvidence[];
  /** `solve`, `expert`, or null without an oracle. */
  oracleName: string | null;
  /** Episodes of the random player. */
  random: EpisodeEvidence[];
  replays: ReplayEvidence[];
  probes: ProbeEvidence[];
  setupTimeoutMs: number;
}

export interface SplitEvidence extends Split {
  tasks: number;
  /** The tasks that are compared with other splits. */
  specs: readonly TaskSpec[];
  /** Indexes of the sampled tasks. */
  sampled: number[];
}

/** One episode, or why it could not be played. */
export interface EpisodeEvidence {
  split: string;
  index: number;
  played: PlayedEpisode | null;
  /** The error of the environment, with the phase in which it occurred. */
  failure: { phase: 'open' | 'play'; text: string } | null;
  /** From the request to the first prompt. */
  setupMs: number;
}

/** Calls of an earlier episode that are repeated in a fresh session. */
export interface ReplayEvidence {
  split: string;
  index: number;
  /** `alone`, or beside an open session of another task. */
  mode: 'alone' | 'concurrent';
  /** What differs from the original, or null. */
  difference: string | null;
  /** Why it could not be repeated, or null. */
  failure: string | null;
}

/** A call with wrong arguments. */
export interface ProbeEvidence {
  tool: string;
  input: JsonObject;
  outcome: 'refused' | 'accepted' | 'failed';
  /** Error text of a call that failed. */
  text: string;
}

export interface EvidenceOptions {
  /** Tasks to sample per split. */
  tasks: number;
  /** Episodes to repeat. */
  replays: number;
  setupTimeoutMs: number;
  maxCalls: number;
  /** Time for all episodes. What is not played by then is missing in the evidence. */
  signal?: AbortSignal | undefined;
}

/** Tasks per split that are compared with other splits. */
const COMPARED_TASKS = 1_000;
const MOST_PROBED_TOOLS = 20;

/** Plays sampled tasks. Rejects only for an environment without splits, or if the signal aborts. */
export async function collectEvidence(subject: Subject, options: EvidenceOptions): Promise<Evidence> {
  const splits: SplitEvidence[] = [];
  for (const split of await subject.splits()) {
    const tasks = await subject.numTasks(split.name);
    const sampled = spread(tasks, options.tasks);
    splits.push({ ...split, tasks, sampled, specs: await subject.tasks(split.name, 0, Math.min(tasks, COMPARED_TASKS)) });
  }
  const { environment } = subject;
  const expert = environment?.players?.find(({ name }) => name === 'expert') ?? null;
  const oracleName = environment?.solve ? 'solve' : expert ? 'expert' : null;
  const random = environment?.players?.find(({ name }) => name === 'random') ?? randomPlayer;
  const evidence: Evidence = {
    subject,
    splits,
    oracle: [],
    oracleName,
    random: [],
    replays: [],
    probes: [],
    setupTimeoutMs: options.setupTimeoutMs,
  };
  for (const { name: split, sampled } of splits) {
    for (const index of sampled) {
      if (oracleName !== null) {
        const oracle = environment!.solve ? async (task: TaskSpec) => solver(environment!, task) : async () => expert!;
        evidence.oracle.push(await playObserved(subject, split, index, oracle, options));
      }
      evidence.random.push(await playObserved(subject, split, index, async () => random, options));
    }
  }
  await replay(evidence, options);
  await probe(evidence, options);
  return evidence;
}

/** `count` indexes, evenly spread over `total`. */
export function spread(total: number, count: number): number[] {
  const chosen = Math.min(total, count);
  return Array.from({ length: chosen }, (_, at) => Math.floor((at * total) / chosen));
}

async function playObserved(
  subject: Subject,
  split: string,
  index: number,
  choose: (task: TaskSpec) => Promise<Player>,
  { maxCalls, setupTimeoutMs, signal }: EvidenceOptions,
): Promise<EpisodeEvidence> {
  signal?.throwIfAborted();
  const about = { split, index };
  const startedAt = performance.now();
  let episode: SubjectEpisode;
  try {
    episode = await withinTime(subject.open(about), setupTimeoutMs, 'no prompt', (late) => void late.close().catch(() => {}));
  } catch (error) {
    const failure = { phase: 'open' as const, text: describeError(error) };
    return { ...about, played: null, failure, setupMs: performance.now() - startedAt };
  }
  const setupMs = performance.now() - startedAt;
  try {
    const [task] = await subject.tasks(split, index, index + 1);
    const player = await choose(task);
    const played = await playOpened(episode, { player, seed: [0, split, index], maxCalls, signal });
    return { ...about, played, failure: null, setupMs };
  } catch (error) {
    signal?.throwIfAborted();
    return { ...about, played: null, failure: { phase: 'play', text: describeError(error) }, setupMs };
  } finally {
    await episode.close().catch(() => {});
  }
}

/** Repeats the longest episodes: their calls say most about the environment. */
async function replay(evidence: Evidence, { replays, signal }: EvidenceOptions): Promise<void> {
  const { subject, oracle, random } = evidence;
  const originals = [...oracle, ...random]
    .filter(({ played }) => played !== null && played.calls.length > 0)
    .toSorted((a, b) => b.played!.calls.length - a.played!.calls.length)
    .slice(0, replays);
  for (const { split, index, played } of originals) {
    const again = { name: 'replay', description: '', play: repeat(played!) };
    const options = { player: again, seed: [], maxCalls: Infinity, signal };
    for (const mode of ['alone', 'concurrent'] as const) {
      signal?.throwIfAborted();
      const about = { split, index, mode };
      try {
        const repeated =
          mode === 'alone' ? await playEpisode(subject, { split, index }, options) : await besideAnother(evidence, about, options);
        evidence.replays.push({ ...about, difference: differenceOf(played!, repeated), failure: null });
      } catch (error) {
        evidence.replays.push({ ...about, difference: null, failure: describeError(error) });
      }
    }
  }
}

const repeat =
  ({ calls }: PlayedEpisode): Player['play'] =>
  async (session) => {
    for (const { tool, input } of calls) await session.call(tool, input);
  };

/** Plays the episode while another one is open and makes random calls between its calls. */
async function besideAnother(
  { subject, random }: Evidence,
  { split, index }: { split: string; index: number },
  options: Parameters<typeof playOpened>[1],
): Promise<PlayedEpisode> {
  const other = random.find((one) => one.split !== split || one.index !== index) ?? { split, index };
  const first = await subject.open({ split, index });
  try {
    const second = await subject.open({ split: other.split, index: other.index });
    try {
      const disturb = { ...options, player: randomPlayer, seed: [1], maxCalls: 100 };
      const [played] = await Promise.all([playOpened(first, options), playOpened(second, disturb)]);
      return played;
    } finally {
      await second.close();
    }
  } finally {
    await first.close();
  }
}

/** Says what differs first, or null. */
function differenceOf(original: PlayedEpisode, repeated: PlayedEpisode): string | null {
  if (original.prompt !== repeated.prompt) return 'the prompt differs';
  for (const [at, { tool, json, reward }] of original.calls.entries()) {
    const again = repeated.calls[at];
    if (again === undefined) return `call ${at + 1} is missing`;
    if (again.reward !== reward) return `the reward of call ${at + 1} (${tool}) is ${again.reward}, not ${reward}`;
    if (again.json !== json) return `the result of call ${at + 1} (${tool}) differs`;
  }
  return null;
}

/** Calls every tool with wrong arguments, each in a fresh session. */
async function probe(evidence: Evidence, { signal }: EvidenceOptions): Promise<void> {
  const { subject } = evidence;
  const first = evidence.random.find(({ played }) => played !== null);
  if (first === undefined) return;
  for (const tool of first.played!.tools.slice(0, MOST_PROBED_TOOLS)) {
    for (const input of wrongInputs(tool)) {
      signal?.throwIfAborted();
      const episode = await subject.open({ split: first.split, index: first.index });
      try {
        const { refused, text } = await episode.call(tool.name, input);
        evidence.probes.push({ tool: tool.name, input, outcome: refused === null ? 'accepted' : 'refused', text });
      } catch (error) {
        evidence.probes.push({ tool: tool.name, input, outcome: 'failed', text: describeError(error) });
      } finally {
        await episode.close().catch(() => {});
      }
    }
  }
}

const SCALARS = ['string', 'integer', 'number', 'boolean'];

/** No arguments where some are required, and an object in the place of a scalar. */
export function wrongInputs({ name, input_schema: schema }: ToolSpec): JsonObject[] {
  if (schema === null) return [];
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? (schema['required'] as string[]) : [];
  const scalar = Object.keys(properties).find((key) => SCALARS.includes(String((properties[key] as JsonObject | null)?.['type'])));
  const random = new SeededRandom(name);
  return [
    ...(required.length > 0 ? [{}] : []),
    ...(scalar === undefined ? [] : [{ ...randomInput(schema, [], () => random.next()), [scalar]: { wrong: true } }]),
  ];
}
