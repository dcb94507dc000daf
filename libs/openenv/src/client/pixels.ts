import { promisify } from 'node:util';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { crc32, deflate } from 'node:zlib';
import { isObject, type JsonObject, type JsonValue, type OutputBlock, toPlainNumber } from '@palestra/protocol';

/** Pixels in observations become image blocks: what counts as pixels is in docs/openenv.md#pixels. */

type ImageBlock = Extract<OutputBlock, { type: 'image' }>;

/** Numbers of one image. Larger arrays stay text. */
const MAX_VALUES = 4_000_000;
const MAX_IMAGES = 4;
const MIN_SIDE = 16;
/** Values that are read before the event loop gets a turn. */
const SLICE_VALUES = 100_000;
const SHAPE_SUFFIX = '_shape';
/** Names of fields that hold a grey image without a shape beside it. A grid of another name is a board or a map. */
const GREY_NAMES = /^(?:screen|screenshot|image|img|frame|pixels|rgb|gr[ae]y(?:scale)?)$/;
const COLOUR_TYPES: Record<number, number> = { 1: 0, 3: 2, 4: 6 };
const COLOUR_NAMES: Record<number, string> = { 1: 'grey', 3: 'RGB', 4: 'RGBA' };
/** Base64 of the first bytes of image files. */
const FILE_KINDS: [start: string, mimeType: string][] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];
const MIN_FILE_CHARACTERS = 64;
const DATA_URL = /^data:(image\/(?:png|jpeg|gif|webp));base64,/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

interface Shape {
  height: number;
  width: number;
  channels: number;
}

type Pixels = { kind: 'file'; mimeType: string; data: string } | ({ kind: 'raw'; values: JsonValue } & Shape);

/** The observation with a note in place of each image, and the images. Rows and colours are as in `numpy` arrays of uint8. */
export interface Separated {
  observation: JsonObject;
  images: ImageBlock[];
}

/** Whether a field of the observation looks like an image. Cheap: reads no more than its first row. */
export const mayHavePixels = (observation: JsonObject): boolean =>
  Object.keys(observation).some((key) => pixelsAt(observation, key) !== null);

/** Encodes the images of an observation as PNG. Long arrays are read in slices, and compressed on a thread of zlib. */
export async function separatePixels(observation: JsonObject): Promise<Separated> {
  const kept: JsonObject = { ...observation };
  const images: ImageBlock[] = [];
  for (const key of Object.keys(observation)) {
    const pixels = images.length < MAX_IMAGES ? pixelsAt(observation, key) : null;
    if (pixels === null) continue;
    const image = pixels.kind === 'file' ? pixels : await encoded(pixels);
    if (image === null) continue;
    images.push({ data: image.data, mimeType: image.mimeType, detail: null, type: 'image' });
    kept[key] =
      `image ${images.length}${pixels.kind === 'raw' ? `: ${pixels.width} x ${pixels.height}, ${COLOUR_NAMES[pixels.channels]}` : ''}`;
  }
  return { observation: kept, images };
}

/** The observation within the data of a reply, with its images apart. */
export async function withoutPixels(data: JsonObject): Promise<{ data: JsonObject; images: ImageBlock[] }> {
  const found = data['observation'];
  if (!isObject(found) || !mayHavePixels(found)) return { data, images: [] };
  const { observation, images } = await separatePixels(found);
  return { data: { ...data, observation }, images };
}

function pixelsAt(observation: JsonObject, key: string): Pixels | null {
  const value = observation[key];
  const given = shapeOf(observation[`${key}${SHAPE_SUFFIX}`] ?? null);
  if (typeof value === 'string') return given === null ? fileOf(value) : rawText(value, given);
  if (!Array.isArray(value) || value.length === 0) return null;
  if (given !== null && !Array.isArray(value[0])) {
    return value.length === given.height * given.width * given.channels ? { kind: 'raw', values: value, ...given } : null;
  }
  const nested = shapeOfNested(value);
  if (nested === null || (given === null && nested.channels === 1 && !GREY_NAMES.test(key))) return null;
  return { kind: 'raw', values: value, ...nested };
}

function fileOf(text: string): Pixels | null {
  if (text.length < MIN_FILE_CHARACTERS) return null;
  const [prefix, declared] = DATA_URL.exec(text.slice(0, 40)) ?? ['', undefined];
  const mimeType = declared ?? FILE_KINDS.find(([start]) => text.startsWith(start))?.[1];
  if (mimeType === undefined) return null;
  const data = text.slice(prefix.length);
  return BASE64.test(data) ? { kind: 'file', mimeType, data } : null;
}

/** Base64 of uint8 values with a shape beside it. */
function rawText(text: string, shape: Shape): Pixels | null {
  const size = shape.height * shape.width * shape.channels;
  if (text.length !== 4 * Math.ceil(size / 3) || !BASE64.test(text)) return fileOf(text);
  return { kind: 'raw', values: text, ...shape };
}

function shapeOf(value: JsonValue): Shape | null {
  if (!Array.isArray(value) || (value.length !== 2 && value.length !== 3)) return null;
  const [height, width, channels] = [toPlainNumber(value[0]), toPlainNumber(value[1]), value.length === 3 ? toPlainNumber(value[2]) : 1];
  return validShape(height, width, channels);
}

/** By the first row and its first pixel. */
function shapeOfNested(value: JsonValue[]): Shape | null {
  const row = value[0];
  if (!Array.isArray(row)) return null;
  const pixel = row[0];
  return validShape(value.length, row.length, Array.isArray(pixel) ? pixel.length : 1);
}

function validShape(height: number | null, width: number | null, channels: number | null): Shape | null {
  if (height === null || width === null || channels === null || COLOUR_TYPES[channels] === undefined) return null;
  const fits = Number.isInteger(height) && Number.isInteger(width) && height >= MIN_SIDE && width >= MIN_SIDE;
  return fits && height * width * channels <= MAX_VALUES ? { height, width, channels } : null;
}

async function encoded(pixels: { values: JsonValue } & Shape): Promise<{ data: string; mimeType: string } | null> {
  const bytes = await bytesOf(pixels);
  if (bytes === null) return null;
  return { data: (await png(bytes, pixels)).toString('base64'), mimeType: 'image/png' };
}

/** The values row by row, or null if one is not a number from 0 to 255. An array of 0 and 1 is a mask or a map, not an image. */
async function bytesOf({ values, height, width, channels }: { values: JsonValue } & Shape): Promise<Buffer | null> {
  const row = width * channels;
  if (typeof values === 'string') return Buffer.from(values, 'base64');
  const bytes = Buffer.alloc(height * row);
  const isFlat = !Array.isArray((values as JsonValue[])[0]);
  let largest = 0;
  let sinceTurn = 0;
  for (let y = 0; y < height; y += 1) {
    const flat = isFlat ? (values as JsonValue[]).slice(y * row, (y + 1) * row) : flatRow((values as JsonValue[])[y]!, width, channels);
    if (flat === null) return null;
    for (let x = 0; x < row; x += 1) {
      const value = flat[x];
      if (typeof value !== 'number' || !(value >= 0 && value <= 255)) return null;
      bytes[y * row + x] = value;
      if (value > largest) largest = value;
    }
    if ((sinceTurn += row) < SLICE_VALUES) continue;
    sinceTurn = 0;
    await nextTurn();
  }
  return largest > 1 ? bytes : null;
}

function flatRow(row: JsonValue, width: number, channels: number): JsonValue[] | null {
  if (!Array.isArray(row) || row.length !== width) return null;
  if (channels === 1 && !Array.isArray(row[0])) return row;
  return row.every((pixel) => Array.isArray(pixel) && pixel.length === channels) ? row.flat() : null;
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const compress = promisify<Buffer, Buffer>(deflate);

/** A PNG of eight bits per channel (https://www.w3.org/TR/png-3/). */
async function png(bytes: Buffer, { height, width, channels }: Shape): Promise<Buffer> {
  const row = width * channels;
  // Each row begins with its filter, 0: none.
  const rows = Buffer.alloc(height * (row + 1));
  for (let y = 0; y < height; y += 1) bytes.copy(rows, y * (row + 1) + 1, y * row, (y + 1) * row);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, COLOUR_TYPES[channels]!, 0, 0, 0], 8);
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('IDAT', await compress(rows)), chunk('IEND', Buffer.alloc(0))]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
