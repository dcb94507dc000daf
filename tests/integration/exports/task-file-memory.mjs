// usage: task-file-memory.mjs FORMAT FILE TASKS. Writes a file of tasks of two kilobytes each, shuffled, and prints rows, bytes and peak RSS.
import { taskFile } from '@palestra/exports';

const [format, file, tasks] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const text = (index) => `Task ${index}: ${'what is the answer? '.repeat(100)}`;
const blocks = (index) => [{ type: 'text', text: text(index), detail: null }];
const tools = [
  { name: 'submit', description: 'Sends the answer', input_schema: { type: 'object', properties: { answer: { type: 'string' } } } },
];
const source = {
  // The evaluation set has the content of the first tenth of the tasks.
  numTasks: async (_environment, split) => (split === 'test' ? tasks / 10 : tasks),
  specs: async (_environment, _split, start, stop) => Array.from({ length: stop - start }, (_, offset) => ({ id: start + offset })),
  difficulty: async () => new Map(Array.from({ length: tasks }, (_, index) => [index, { avg_reward: 0.5, num_rollouts: 8 }])),
  readTask: async (_environment, _split, index) => ({
    prompt: blocks(index),
    messages: [{ role: 'user', blocks: blocks(index), detail: null }],
    tools,
    spec: { id: index },
    version: 1,
  }),
};
const filter = { exclude: [{ environment: 'acme/math', split: 'test' }], excludeKeys: [], minReward: 0.1, shuffleSeed: 1 };
let [rows, bytes, total] = [0, 0, 0];
const options = { source, environments: ['acme/math'], split: 'train', format, file, filter, concurrency: 32 };
const signal = new AbortController().signal;
for await (const piece of taskFile({
  ...options,
  signal,
  onTotal: (count) => (total = count),
  onRow: () => (rows += 1),
  onFailure: (failure) => console.error(failure),
})) {
  bytes += piece.length;
}
console.log(JSON.stringify({ rows, total, bytes, peakRssMb: Math.round(process.resourceUsage().maxRSS / 1024) }));
