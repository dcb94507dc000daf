import { type JsonObject, type JsonValue, parseJson } from '@palestra/protocol';
import { describe, expect, test } from 'vitest';
import { pixelsOf } from '../../../../tests/support/png.ts';
import { OpenEnvBackend } from './openenv-backend.ts';
import { mayHavePixels, separatePixels, withoutPixels } from './pixels.ts';
import { startScripted } from './scripted-server.fixture.ts';

const read = (value: object): JsonObject => parseJson(JSON.stringify(value)) as JsonObject;
const grid = (height: number, width: number, at: (y: number, x: number) => JsonValue): JsonValue[] =>
  Array.from({ length: height }, (_, y) => Array.from({ length: width }, (__, x) => at(y, x)));
const colour = (y: number): [number, number, number] => (y < 20 ? [255, 0, 0] : [0, 0, 128]);
const screen = grid(40, 30, (y) => colour(y));
const separated = async (observation: object) => separatePixels(read(observation));
const coloursOf = (data: string, from: number, to: number) => [...pixelsOf(Buffer.from(data, 'base64')).coloursIn(from, to)];

describe('pixels of an observation', () => {
  test.each([
    ['nested rows of colours', { screen }],
    ['a flat list with its shape', { screen: screen.flat(2), screen_shape: [40, 30, 3] }],
    ['base64 of bytes with its shape', { screen: Buffer.from(screen.flat(2) as number[]).toString('base64'), screen_shape: [40, 30, 3] }],
  ])('as %s become an image, rows from the top', async (_, observation) => {
    const { observation: kept, images } = await separated({ ...observation, lives: 3.0 });
    expect(kept).toMatchObject({ screen: 'image 1: 30 x 40, RGB', lives: 3 });
    expect(images).toEqual([{ data: expect.any(String), mimeType: 'image/png', detail: null, type: 'image' }]);
    const { width, height } = pixelsOf(Buffer.from(images[0]!.data, 'base64'));
    expect([width, height]).toEqual([30, 40]);
    expect(coloursOf(images[0]!.data, 0, 20)).toEqual([['ff0000', 600]]);
    expect(coloursOf(images[0]!.data, 20, 40)).toEqual([['000080', 600]]);
  });

  test('with transparency, and grey ones by their name or shape', async () => {
    const { images, observation } = await separated({
      overlay: grid(16, 16, () => [1, 2, 3, 255]),
      frame: grid(16, 20, (y) => y * 10),
      heat: grid(16, 20, (y) => y * 10),
      heat_shape: [16, 20],
    });
    expect(observation).toMatchObject({
      overlay: 'image 1: 16 x 16, RGBA',
      frame: 'image 2: 20 x 16, grey',
      heat: 'image 3: 20 x 16, grey',
    });
    expect(images.map(({ data }) => Buffer.from(data, 'base64')[25])).toEqual([6, 0, 0]);
  });

  test.each([
    ['a data URL', (data: string) => `data:image/png;base64,${data}`],
    ['the file alone', (data: string) => data],
  ])('as an image file in base64 (%s) pass as they are', async (_, written) => {
    const { data } = (await separated({ screen })).images[0]!;
    expect(await separated({ screenshot: written(data), url: 'https://example.org' })).toEqual({
      observation: { screenshot: 'image 1', url: 'https://example.org' },
      images: [{ data, mimeType: 'image/png', detail: null, type: 'image' }],
    });
  });

  test.each<[string, object]>([
    ['a board', { board: grid(6, 7, () => 2) }],
    ['a large board without a name of a picture', { board: grid(40, 40, (y) => y) }],
    ['a map of zeros and ones', { frame: grid(64, 64, (y, x) => (y + x) % 2) }],
    ['planes of zeros and ones', { planes: grid(19, 19, () => [0, 1, 0]) }],
    ['numbers that are no bytes', { screen: grid(20, 20, () => [0.5, 300, 2]) }],
    ['rows of unequal length', { screen: [...grid(20, 20, () => [9, 9, 9]), [[1, 2, 3]]] }],
    ['a list whose shape does not fit', { screen: [1, 2, 3], screen_shape: [40, 30, 3] }],
    ['memory', { screen: Array(128).fill(7), screen_shape: [128] }],
    ['text that begins like an image', { note: `/9j/${'not base64! '.repeat(20)}` }],
    ['an array beyond the limit', { screen: [], screen_shape: [5_000, 5_000, 3] }],
  ])('are not %s', async (_, observation) => {
    expect(await separated(observation)).toEqual({ observation: read(observation), images: [] });
  });

  test('are at most four of one observation', async () => {
    const { images, observation } = await separated(Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, screen])));
    expect(images).toHaveLength(4);
    expect(observation['e']).toEqual(screen);
  });

  test('are looked for only in the observation of a reply', async () => {
    const data = read({ observation: { text: 'hi' }, metadata: { screen } });
    expect(await withoutPixels(data)).toEqual({ data, images: [] });
    expect(mayHavePixels(read({ text: 'hi', legal_actions: [0, 1, 2] }))).toBe(false);
  });

  test('of a large image leave the event loop to others', async () => {
    let turns = 0;
    const timer = setInterval(() => (turns += 1));
    await separated({ screen: grid(800, 600, (y) => [y % 256, 0, 0]) });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(0);
  });
});

test.each(['C', 'E'] as const)(
  'a server of generation %s: prompt, result and ledger have the image, its client the numbers',
  async (generation) => {
    const observation = { screen: screen.flat(2), screen_shape: [40, 30, 3], lives: 3 };
    const frame = JSON.stringify({ type: 'observation', data: { observation, reward: 1, done: false } });
    const server = await startScripted({ generation, onMessage: (socket) => (socket.send(frame), true) });
    const backend = new OpenEnvBackend({ url: server.url });
    const soon = AbortSignal.timeout(30_000);
    const ref = await backend.create({ sid: 'sid', env: null, task: { kind: 'spec', spec: {} }, toolsetName: null, secrets: {} }, soon);
    const session = backend.session(ref);
    const shown = [
      { type: 'text', text: '{"screen":"image 1: 30 x 40, RGB","screen_shape":[40,30,3],"lives":3}', detail: null },
      { type: 'image', data: expect.any(String), mimeType: 'image/png', detail: null },
    ];
    expect(await session.prompt(soon)).toEqual(shown);
    const called = await session.call({ tool: 'step', input: { n: 1 }, taskId: '' }, soon);
    expect(JSON.parse(called.text)).toMatchObject({ ok: true, output: { blocks: shown, reward: 1 } });
    const { reply, result } = await session.native!.exchange({ type: 'step', data: { n: 1 } }, null, soon);
    expect(reply).toBe(frame);
    expect(JSON.parse((result as { text: string }).text)).toEqual(JSON.parse(called.text));
    await backend.close();
    await server.stop();
  },
);
