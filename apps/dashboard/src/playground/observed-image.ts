import type { JsonObject } from '@palestra/protocol';
import { isObject } from './form/field.ts';

export interface ObservedImage {
  /** Base64. */
  data: string;
  mimeType: string;
}

const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;
const DATA_URL = /^data:(image\/[\w.+-]+);base64,/;
/** A shorter text can be valid base64 by accident. */
const MIN_CHARACTERS = 40;
const MIME_NAMES = ['mime_type', 'mimeType', 'mime', 'media_type', 'content_type'];

const isData = (value: unknown): value is string =>
  typeof value === 'string' && value.length >= MIN_CHARACTERS && BASE64.test(value.slice(0, 2_000));
const ownValue = (object: JsonObject, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined);
const mimeIn = (object: JsonObject, names: readonly string[]): string | null => {
  const found = names.map((name) => ownValue(object, name)).find((mime) => typeof mime === 'string' && mime.startsWith('image/'));
  return typeof found === 'string' ? found : null;
};

/**
 * The image in a member of an observation: a data URL; an object with base64 and a MIME type (`{data, mime_type}`); or base64 whose MIME
 * type is another member of the observation (`screen_mime_type` for `screen`, or `mime_type`). null if the member is no image.
 */
export function imageIn(name: string, value: unknown, observation: JsonObject): ObservedImage | null {
  if (typeof value === 'string') {
    const [head, mimeType] = DATA_URL.exec(value.slice(0, 100)) ?? [];
    if (head !== undefined && mimeType !== undefined) return { data: value.slice(head.length), mimeType };
    const mime = mimeIn(observation, [...MIME_NAMES.map((suffix) => `${name}_${suffix}`), ...MIME_NAMES]);
    return mime !== null && isData(value) ? { data: value, mimeType: mime } : null;
  }
  if (!isObject(value)) return null;
  const mimeType = mimeIn(value, MIME_NAMES);
  const data = ['data', 'base64', 'image', 'bytes'].map((name) => ownValue(value, name)).find(isData);
  return mimeType !== null && data !== undefined ? { data, mimeType } : null;
}
