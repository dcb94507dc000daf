import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, type Json, text, times } from './family.ts';

const WRAPS = {
  byte: {
    says: 'Every value is kept as its remainder modulo 256, from 0 to 255',
    python: 'value % 256',
    of: (value: number) => ((value % 256) + 256) % 256,
  },
  clamp: {
    says: 'A value below -99 becomes -99, a value above 99 becomes 99',
    python: 'max(-99, min(99, value))',
    of: (value: number) => Math.max(-99, Math.min(99, value)),
  },
  signed: {
    says: 'Every value is kept in eight bits with sign: 128 becomes -128, -129 becomes 127 and so on',
    python: '(value + 128) % 256 - 128',
    of: (value: number) => ((((value + 128) % 256) + 256) % 256) - 128,
  },
} as const;
const MACHINE_RESULTS = {
  printed: { says: 'the list of the printed values', python: 'printed' },
  final: { says: 'the list [a, b, c] of the final values', python: '[memory["a"], memory["b"], memory["c"]]' },
} as const;
const STEP_LIMIT = 5000;

export const tinyMachines = defineFamily(
  'tiny_machines',
  combine({ wrap: ['byte', 'clamp', 'signed'], relative: [true, false], result: ['printed', 'final'] } as const),
  ({ wrap, relative, result }) => ({
    level: 4,
    parameters: 'program',
    statement: `
      Run a program of a small machine with the variables a, b and c, which are 0 at first. \`program\` is the list of its instructions, texts with single spaces. A source is a variable or a whole number:

      - \`set v s\`: the variable v becomes the value of the source s
      - \`add v s\`, \`sub v s\`, \`mul v s\`: v becomes v + s, v - s, v * s
      - \`print s\`: prints the value of s
      - \`jump s n\`: if the value of s is not 0, ${
        relative
          ? 'continues n instructions after this one (jump 1 -2 goes two back, n is never 0); a jump to before the first or after the last instruction ends the program'
          : 'continues at instruction number n, where the first one has number 0; the program ends if there is no instruction n'
      }

      ${WRAPS[wrap].says}, when it is written to a variable${wrap === 'clamp' ? '' : ', and when it is printed'}. The program ends after its last instruction, or after ${STEP_LIMIT} executed instructions. Return ${MACHINE_RESULTS[result].says}.

      A program has at most 60 instructions; numbers are from -300 to 300.`,
    reference(program: string[]) {
      const memory: Record<string, number> = { a: 0, b: 0, c: 0 };
      const printed: number[] = [];
      const value = (source: string) => memory[source] ?? Number(source);
      for (let [at, steps] = [0, 0]; at >= 0 && at < program.length && steps < STEP_LIMIT; steps += 1) {
        const [name, first, second] = program[at]!.split(' ') as [string, string, string];
        if (name === 'print') printed.push(wrap === 'clamp' ? value(first) : WRAPS[wrap].of(value(first)));
        else if (name === 'jump' && value(first) !== 0) {
          at = relative ? at + Number(second) : Number(second);
          continue;
        } else if (name !== 'jump') {
          const [old, operand] = [memory[first]!, value(second)];
          memory[first] = WRAPS[wrap].of({ set: operand, add: old + operand, sub: old - operand, mul: old * operand }[name]!);
        }
        at += 1;
      }
      return result === 'printed' ? printed : [memory['a']!, memory['b']!, memory['c']!];
    },
    python: `
      def fit(value):
          return ${WRAPS[wrap].python}

      def solve(program):
          memory = {"a": 0, "b": 0, "c": 0}
          printed = []
          at = steps = 0

          def read(source):
              return memory[source] if source in memory else int(source)

          while 0 <= at < len(program) and steps < ${STEP_LIMIT}:
              steps += 1
              name, *args = program[at].split(" ")
              if name == "print":
                  printed.append(${wrap === 'clamp' ? 'read(args[0])' : 'fit(read(args[0]))'})
              elif name == "jump":
                  if read(args[0]) != 0:
                      at = ${relative ? 'at + int(args[1])' : 'int(args[1])'}
                      continue
              else:
                  old = memory[args[0]]
                  operand = read(args[1])
                  if name == "set":
                      new = operand
                  elif name == "add":
                      new = old + operand
                  elif name == "sub":
                      new = old - operand
                  else:
                      new = old * operand
                  memory[args[0]] = fit(new)
              at += 1
          return ${MACHINE_RESULTS[result].python}`,
    mistakes: [
      [`return ${WRAPS[wrap].python}`, 'return value'],
      ['read(args[0]) != 0', 'read(args[0]) == 1'],
    ],
    inputs: (random) => [
      [['set a 250', 'add a 10', 'print a', 'set b a', 'sub b 7', 'print b']],
      [['set a 3', 'add b a', 'sub a 1', `jump a ${relative ? '-2' : '1'}`, 'print b', 'mul b -30', 'print b', 'set c b']],
      [machineProgram(random, 8, relative)],
      [[]],
      [['add a 1', 'print a', `jump 1 ${relative ? '-2' : '0'}`].slice(0, result === 'printed' ? 2 : 3)],
      [['set a 99', 'add a 1', 'print a', 'mul a 7', 'print a', 'sub a 300', 'print a', 'print -200']],
      [['set a -3', 'sub b 50', 'add a 1', `jump a ${relative ? '-2' : '1'}`, 'set c b', 'print b', 'print a']],
      [[`jump 0 ${relative ? '5' : '0'}`, 'set a 7', `jump a ${relative ? '-9' : '77'}`, 'print a']],
      ...times(12, () => [machineProgram(random, random.integer(6, 25), relative)]),
      [
        [
          'set a 90',
          'set b 90',
          'add c 3',
          'sub b 1',
          `jump b ${relative ? '-2' : '2'}`,
          'mul c 3',
          'sub a 1',
          `jump a ${relative ? '-6' : '1'}`,
          'print c',
        ],
      ],
    ],
  }),
);

/** Jumps back are guarded by a variable that was set before, so that programs mostly end. */
function machineProgram(random: SeededRandom, length: number, relative: boolean): Json {
  const variable = () => random.pick(['a', 'b', 'c']);
  const source = () => (random.next() < 0.5 ? variable() : String(random.integer(-120, 120)));
  return times(length, (at) => {
    const kind = random.next();
    if (kind < 0.2) return `print ${source()}`;
    if (kind < 0.35) {
      const target = at + random.integer(2, 4);
      return `jump ${source()} ${relative ? target - at : target}`;
    }
    return `${random.pick(['set', 'add', 'sub', 'mul', 'add', 'sub'])} ${variable()} ${source()}`;
  });
}

const STATES = {
  door: {
    states: ['open', 'closed', 'locked'],
    start: 'closed',
    moves: ['open push closed', 'closed pull open', 'closed turn locked', 'locked turn closed', 'locked kick open'],
  },
  order: {
    states: ['new', 'paid', 'packed', 'sent', 'cancelled'],
    start: 'new',
    moves: [
      'new pay paid',
      'paid pack packed',
      'packed send sent',
      'new cancel cancelled',
      'paid cancel cancelled',
      'packed unpack paid',
      'sent return new',
    ],
  },
  player: {
    states: ['idle', 'playing', 'paused', 'broken'],
    start: 'idle',
    moves: [
      'idle play playing',
      'playing pause paused',
      'paused play playing',
      'playing stop idle',
      'paused stop idle',
      'playing drop broken',
      'idle drop broken',
      'broken repair idle',
    ],
  },
} as const;
const INVALID = {
  ignored: 'An event that the current state does not list changes nothing',
  reset: 'An event that the current state does not list leads back to the first state',
  ends: 'At the first event that the current state does not list, the log ends: it and all later events are not handled',
} as const;
const LOG_RESULTS = {
  final: 'the list of the final states of the logs',
  visits:
    'for each log, the list of how often each state was entered, in the order of the states above; the first state counts as entered at the start, and a change to the same state counts',
  invalid: 'for each log, the pair [number of handled events that the state at that time did not list, final state]',
} as const;

export const eventLogs = defineFamily(
  'event_logs',
  combine({
    machine: ['door', 'order', 'player'],
    invalid: ['ignored', 'reset', 'ends'],
    result: ['final', 'visits', 'invalid'],
  } as const).filter(({ invalid, result }) => invalid !== 'ends' || result !== 'invalid'),
  ({ machine, invalid, result }) => {
    const { states, start, moves } = STATES[machine];
    const rules = moves.map((move) => move.split(' ') as [string, string, string]);
    const events = [...new Set(rules.map(([, event]) => event))];
    const log = (random: SeededRandom, length: number): string => {
      let state: string = start;
      return times(length, () => {
        const valid = rules.filter(([from]) => from === state);
        if (valid.length === 0 || random.next() < 0.12) return random.pick(events);
        const [, event, to] = random.pick(valid);
        state = to;
        return event;
      }).join(' ');
    };
    return {
      level: 2,
      parameters: 'logs',
      statement: `
        A machine has the states ${states.join(', ')}; it begins as ${start}. These events change it (state, event, next state):

        ${moves.map((move) => `- ${move.replaceAll(' ', ', ')}`).join('\n        ')}

        ${INVALID[invalid]}. Each of \`logs\` is a text of events, separated by single spaces, perhaps empty; it begins with the machine in its first state. Return ${LOG_RESULTS[result]}.

        There are at most 200 logs of at most 400 events.`,
      reference: (logs: string[]) =>
        logs.map((line) => {
          let [state, wrong, ended] = [start as string, 0, false];
          const visits = new Map<string, number>(states.map((name) => [name, name === start ? 1 : 0]));
          for (const event of line.split(' ').filter(Boolean)) {
            if (ended) break;
            let next = rules.find(([from, on]) => from === state && on === event)?.[2];
            if (next === undefined) {
              if (invalid === 'ends') {
                ended = true;
                continue;
              }
              wrong += 1;
              if (invalid === 'reset') next = start;
            }
            if (next !== undefined) {
              state = next;
              visits.set(state, visits.get(state)! + 1);
            }
          }
          return { final: state, visits: [...visits.values()], invalid: [wrong, state] }[result];
        }),
      python: `
        RULES = ${JSON.stringify(Object.fromEntries(rules.map(([from, event, to]) => [`${from} ${event}`, to])))}
        STATES = ${JSON.stringify(states)}

        def follow(log):
            state = "${start}"
            wrong = 0
            visits = [int(name == state) for name in STATES]
            for event in log.split():
                after = RULES.get(state + " " + event)
                if after is None:
                    wrong += 1
                    ${{ ignored: 'continue', reset: `after = "${start}"`, ends: 'break' }[invalid]}
                state = after
                visits[STATES.index(state)] += 1
            return ${{ final: 'state', visits: 'visits', invalid: '[wrong, state]' }[result]}

        def solve(logs):
            return [follow(log) for log in logs]`,
      mistakes: [
        [
          { ignored: 'wrong += 1\n            continue', reset: `after = "${start}"`, ends: 'break' }[invalid],
          { ignored: `wrong += 1\n            after = "${start}"`, reset: 'continue', ends: 'continue' }[invalid],
        ],
      ],
      inputs: (random) => [
        [
          [
            rules
              .slice(0, 2)
              .map(([, event]) => event)
              .join(' '),
            log(random, 4),
          ],
        ],
        [[log(random, 8), '']],
        [[log(random, 5), events.join(' '), events[0]!]],
        [[]],
        [['']],
        [times(12, () => times(5, () => random.pick(events)).join(' '))],
        ...times(7, () => [times(random.integer(3, 12), () => log(random, random.integer(2, 30)))]),
        [times(150, () => log(random, 300))],
      ],
    };
  },
);

const EVICTIONS = {
  oldest: 'the key that was stored first (reading does not matter)',
  unused: 'the key that was last read or stored the longest time ago',
  rarest:
    'the key that was read or stored least often since it was stored last; of several, the one that was not read or stored for the longest time',
  newest: 'the key that was read or stored most recently before the new one',
} as const;
const CACHE_RESULTS = {
  hits: 'the number of accesses that found their key',
  evicted: 'the list of the evicted keys, in order',
  content: 'the list of the keys in the cache at the end, in alphabetical order',
} as const;

export const caches = defineFamily(
  'caches',
  combine({ eviction: ['oldest', 'unused', 'rarest', 'newest'], result: ['hits', 'evicted', 'content'] } as const),
  ({ eviction, result }) => ({
    level: eviction === 'rarest' ? 4 : 3,
    parameters: 'capacity, keys',
    statement: `
      A cache holds at most \`capacity\` keys and is empty at first. The \`keys\`, a list of texts, are accessed in order. A key that the cache has is read. A key that it does not have is stored; if the cache is full, a key is evicted first: ${EVICTIONS[eviction]}. Return ${CACHE_RESULTS[result]}.

      \`capacity\` is from 1 to 500, and there are at most 5000 accesses.`,
    reference(capacity: number, keys: string[]) {
      const cache = new Map<string, { stored: number; used: number; count: number }>();
      const evicted: string[] = [];
      let hits = 0;
      keys.forEach((key, now) => {
        const entry = cache.get(key);
        if (entry) {
          hits += 1;
          entry.used = now;
          entry.count += 1;
          return;
        }
        if (cache.size === capacity) {
          const rank = ({ stored, used, count }: { stored: number; used: number; count: number }) =>
            ({ oldest: stored, unused: used, rarest: count * 10_000 + used, newest: -used })[eviction];
          let worst = '';
          let least = Infinity;
          for (const [name, known] of cache) {
            if (rank(known) >= least) continue;
            worst = name;
            least = rank(known);
          }
          cache.delete(worst);
          evicted.push(worst);
        }
        cache.set(key, { stored: now, used: now, count: 1 });
      });
      return { hits, evicted, content: [...cache.keys()].toSorted() }[result];
    },
    python: `
      def solve(capacity, keys):
          cache = {}
          evicted = []
          hits = 0
          for now, key in enumerate(keys):
              if key in cache:
                  hits += 1
                  stored, used, count = cache[key]
                  cache[key] = (stored, now, count + 1)
                  continue
              if len(cache) == capacity:
                  worst = min(cache, key=lambda name: ${
                    {
                      oldest: 'cache[name][0]',
                      unused: 'cache[name][1]',
                      rarest: '(cache[name][2], cache[name][1])',
                      newest: '-cache[name][1]',
                    }[eviction]
                  })
                  del cache[worst]
                  evicted.append(worst)
              cache[key] = (now, now, 1)
          return ${{ hits: 'hits', evicted: 'evicted', content: 'sorted(cache)' }[result]}`,
    mistakes: [
      [
        { oldest: 'cache[name][0]', unused: 'cache[name][1]', rarest: '(cache[name][2], cache[name][1])', newest: '-cache[name][1]' }[
          eviction
        ],
        { oldest: 'cache[name][1]', unused: 'cache[name][0]', rarest: '(cache[name][2], -cache[name][1])', newest: '-cache[name][0]' }[
          eviction
        ],
      ],
      ['len(cache) == capacity', 'len(cache) > capacity'],
    ],
    inputs: (random) => [
      [2, ['a', 'b', 'a', 'c', 'b', 'a']],
      [3, ['x', 'y', 'z', 'x', 'x', 'w', 'y', 'v']],
      accesses(random, 3, 14, 5),
      [1, []],
      [1, ['k', 'k', 'l', 'k']],
      [10, ['a', 'b', 'c', 'a', 'd']],
      ...times(10, () => accesses(random, random.integer(2, 6), random.integer(15, 60), random.integer(5, 9))),
      accesses(random, 60, 3000, 90),
    ],
  }),
);

/** Some keys are accessed more often. */
const accesses = (random: SeededRandom, capacity: number, count: number, keys: number): Json[] => {
  const names = times(keys, (index) => text(random, 1, 'abcdefgh') + index);
  return [capacity, times(count, () => names[Math.min(random.integer(0, keys - 1), random.integer(0, keys - 1))]!)];
};
