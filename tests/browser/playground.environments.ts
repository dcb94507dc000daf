import type { Page } from 'playwright-core';
import { deflateSync } from 'node:zlib';
import { defineEnvironment, imageBlock, textBlock, tool, z } from '@palestra/environment-kit';
import type { SharedPalestra } from '../support/palestra.ts';

/** Environments for tests of the playground: one with actions instead of tools, and one with every kind of argument. */

/** Sends a request as a trainer does, for the session `sid` if given. Throws if the service refuses it. */
export const apiOf =
  (palestra: () => SharedPalestra) =>
  async <T>(method: string, path: string, body?: object, sid?: string): Promise<T> => {
    const { url, apiKey } = palestra();
    const headers = { 'x-api-key': apiKey, ...(sid && { 'x-session-id': sid }), ...(body && { 'content-type': 'application/json' }) };
    const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (/^[[{]/.test(text) ? JSON.parse(text) : text) as T;
  };

/** A grey PNG of 2 × 2: signature, header, data, end. */
export function png(): Buffer {
  const crcTable = Array.from({ length: 256 }, (_, n) => {
    let c = n;
    for (let bit = 0; bit < 8; bit += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    return c >>> 0;
  });
  const crc = (bytes: Buffer) => (bytes.reduce((c, byte) => crcTable[(c ^ byte) & 255]! ^ (c >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([size, body, sum]);
  };
  const header = Buffer.from([0, 0, 0, 2, 0, 0, 0, 2, 8, 0, 0, 0, 0]);
  const data = deflateSync(Buffer.from([0, 90, 200, 0, 200, 90]));
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

interface Board {
  cells: number[][];
  moves: number;
}

/** The observation of `columns`, as an OpenEnv server with plain actions returns it. */
function observe({ cells, moves }: Board): object {
  return {
    board: cells,
    legal_actions: cells[0]!.flatMap((cell, column) => (cell === 0 ? [column] : [])),
    info_state: cells.flat(),
    screen: png().toString('base64'),
    screen_mime_type: 'image/png',
    hint: moves === 0 ? '<img src=x onerror="document.title=1"> Drop a stone.' : `Stone ${moves}.`,
    done_reason: null,
    players: { mine: 1, theirs: 2, names: ['you', 'nobody'] },
  };
}

/** Drops stones into four columns of three. A full column scores −1; the fourth stone ends the episode with 1. */
export const columns = defineEnvironment<{ size: number }, Board>({
  name: 'columns',
  readme: '# Columns\n\nDrop stones. <script>document.title = 2</script>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n',
  splits: ['train', 'test'],
  tasks: () => [{ size: 4 }, { size: 5 }],
  create: ({ task }) => ({ cells: Array.from({ length: 3 }, () => Array.from({ length: task.size }, () => 0)), moves: 0 }),
  prompt: ({ state }) => JSON.stringify(observe(state)),
  tools: {
    step: tool({
      description: 'Drops a stone.',
      input: z.object({ column: z.int().min(0).max(6).describe('From the left, 0 is the first.'), note: z.string().optional() }),
      run: ({ column }, { state }) => {
        state.moves += 1;
        const row = state.cells.findLastIndex((cells) => cells[column] === 0);
        if (row !== -1) state.cells[row]![column] = 1;
        const over = state.moves === 4;
        return { content: textBlock(JSON.stringify(observe(state))), reward: row === -1 ? -1 : over ? 1 : null, finished: over };
      },
    }),
  },
});

/** Echoes its arguments under a handwritten schema with everything that forms support. */
export const forms = defineEnvironment<{ n: number }, null>({
  name: 'forms',
  splits: ['train'],
  tasks: () => [{ n: 0 }],
  create: () => null,
  prompt: () => 'Fill in the forms.',
  tools: {
    every: tool({
      description: 'Takes every kind of argument.',
      input: z.any(),
      inputSchema: {
        type: 'object',
        $defs: {
          Point: {
            type: 'object',
            description: 'A place on the map',
            properties: { x: { type: 'number', minimum: 0, exclusiveMaximum: 10 }, y: { type: 'number' } },
            required: ['x', 'y'],
          },
        },
        properties: {
          code: { type: 'string', format: 'multiline', description: 'Runs as it is' },
          count: { type: 'integer', minimum: 1, maximum: 5, default: 2 },
          really: { type: 'boolean' },
          colour: { enum: ['red', 'green'] },
          tensor: { type: 'array', items: { type: 'array', items: { type: 'number', maximum: 9 }, minItems: 2, maxItems: 2 } },
          names: { type: 'array', items: { type: 'string' }, minItems: 1 },
          at: { $ref: '#/$defs/Point' },
          maybe: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
          either: {
            oneOf: [
              { title: 'by name', type: 'string' },
              { title: 'by place', $ref: '#/$defs/Point' },
            ],
          },
          comment: { type: 'string' },
        },
        required: ['code', 'count', 'really', 'colour', 'tensor', 'names', 'at', 'maybe'],
      },
      run: (input) => ({ content: JSON.stringify(input), reward: null }),
    }),
    nothing: tool({ description: 'Takes no argument.', run: () => 'nothing' }),
  },
});

/** The session of the page. */
export const sidOf = (page: Page): string => new URL(page.url()).searchParams.get('sid')!;

export const card = (page: Page, position: number, name = 'step') => page.getByRole('listitem', { name: `Call ${position}: ${name}` });

/** A fact of the session that the page shows beside it. */
export const fact = (page: Page, name: string) => page.getByRole('region', { name: 'Observer' }).locator(`[data-fact="${name}"]`);

export const legal = (page: Page) => page.getByRole('group', { name: 'Legal actions' });

/** Paints pictures, with every kind of argument and result. `onLook` answers the tool `look`. */
export const studioOf = (onLook: () => string | Promise<string>) =>
  defineEnvironment<{ scene: string }, { strokes: number }>({
    name: 'studio',
    splits: ['train'],
    tasks: () => ['harbour', 'orchard', 'night'].map((scene) => ({ scene })),
    create: () => ({ strokes: 0 }),
    prompt: ({ task }) => [{ type: 'text', text: `Paint the ${task.scene}.`, detail: null }, imageBlock(png(), 'image/png')],
    tools: {
      paint: tool({
        description: 'Paints strokes.\nEach stroke is a line or a dot.',
        input: z.object({
          title: z.string().min(3).describe('Of the picture'),
          size: z.object({ width: z.int().min(1).max(100), height: z.int().min(1).max(100) }),
          strokes: z
            .array(
              z.union([
                z.object({ kind: z.literal('line'), length: z.number().positive() }).describe('A line'),
                z.object({ kind: z.literal('dot') }),
              ]),
            )
            .min(1),
          colour: z.enum(['red', 'blue']),
          signed: z.boolean(),
          note: z.string().nullable(),
          tags: z.record(z.string(), z.int()).optional(),
        }),
        run: (input, { state }) => {
          state.strokes += input.strokes.length;
          return {
            content: [{ type: 'text' as const, text: JSON.stringify(input), detail: null }, imageBlock(png(), 'image/png')],
            reward: 0.25,
          };
        },
      }),
      spill: { description: 'Spills the paint.', run: () => Promise.reject(new Error('the pot of paint fell over')) },
      look: tool({
        description: 'Looks for a while.',
        run: onLook,
      }),
      sign: tool({ description: 'Ends it.', run: () => ({ content: 'signed', reward: -0.125, finished: true }) }),
    },
  });
