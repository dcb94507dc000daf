import type { JsonObject } from '@palestra/protocol';
import { isObject } from './form/field.ts';

export interface ObservedImage {
  /** Base64. */
  data: string;
  mimeType: string;
}

const BASE64 = /^[A-Za-z0-9+/\s]+={0,2}\s*$/;
const DATA_URL = /^data:(image\/[\w.+-]+);base64,/;
/** Short texts that happen to be base64 are texts. */
const MIN_CHARACTERS = 40;
const MIME_NAMES = ['mime_type', 'mimeType', 'mime', 'media_type', 'content_type'];

const isData = (value: unknown): value is string =>
  typeof value === 'string' && value.length >= MIN_CHARACTERS && BASE64.test(value.slice(0, 2_000));
const own = (object: JsonObject, name: string): unknown => (Object.hasOwn(object, name) ? object[name] : undefined);
const mimeIn = (object: JsonObject, names: readonly string[]): string | null => {
  const found = names.map((name) => own(object, name)).find((mime) => typeof mime === 'string' && mime.startsWith('image/'));
  return typeof found === 'string' ? found : null;
};

/**
 * The image that a member of an observation is: a data URL; base64 in an object beside its MIME type (`{data, mime_type}`); or base64 whose
 * MIME type is another member of the observation (`screen_mime_type` of `screen`, or `mime_type` of all). null: it is none.
 */
export function imageIn(name: string, value: unknown, beside: JsonObject): ObservedImage | null {
  if (typeof value === 'string') {
    const [head, mimeType] = DATA_URL.exec(value.slice(0, 100)) ?? [];
    if (head !== undefined && mimeType !== undefined) return { data: value.slice(head.length), mimeType };
    const mime = mimeIn(beside, [...MIME_NAMES.map((one) => `${name}_${one}`), ...MIME_NAMES]);
    return mime !== null && isData(value) ? { data: value, mimeType: mime } : null;
  }
  if (!isObject(value)) return null;
  const mimeType = mimeIn(value, MIME_NAMES);
  const data = ['data', 'base64', 'image', 'bytes'].map((one) => own(value, one)).find(isData);
  return mimeType !== null && data !== undefined ? { data, mimeType } : null;
}
